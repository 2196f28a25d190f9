// The queue that shows dead letters. RabbitMQ cannot delete a message by its id, so what is gone is found by going through
// the queue: each message is got; one that is gone is acknowledged, and any other is published again at the end before the
// old copy is acknowledged. A crash in between leaves two copies, and the next round takes the second one out.
import type { ConfirmChannel, GetMessage } from 'amqplib'
import type { MirrorQueue } from '../broker.js'
import type { Control } from './rabbitmq-control.js'
import { ensureMirror, type QueueForm } from './rabbitmq-queues.js'

type Shown = Parameters<MirrorQueue['add']>[0][number]

export class RabbitMirror implements MirrorQueue {
  readonly #control: Control
  readonly #form: QueueForm
  readonly #queue: string
  /** Ids seen since this round through the queue began. */
  #seen = new Set<string>()
  #leftOfRound = 0

  constructor(control: Control, form: QueueForm, queue: string) {
    this.#control = control
    this.#form = form
    this.#queue = queue
  }

  add(messages: readonly Shown[]): Promise<void> {
    return this.#control.use(async channel => {
      await ensureMirror(channel, this.#form, this.#queue)
      for (const { headers, body } of messages) {
        const { 'redrive-id': messageId = '', 'redrive-name': type = '' } = headers
        const about = { persistent: true, contentType: 'application/json', messageId, type, headers }
        channel.sendToQueue(this.#queue, Buffer.from(body), about)
      }
      await channel.waitForConfirms()
    })
  }

  sweep(limit: number, isGone: (id: string) => boolean) {
    return this.#control.use(async channel => {
      await ensureMirror(channel, this.#form, this.#queue)
      const { messageCount } = await channel.checkQueue(this.#queue)
      if (this.#leftOfRound <= 0) {
        this.#leftOfRound = messageCount
        this.#seen = new Set()
      }
      const got: GetMessage[] = []
      for (const most = Math.min(limit, messageCount, this.#leftOfRound); got.length < most; ) {
        const message = await channel.get(this.#queue)
        if (!message) break
        got.push(message)
      }
      const gone = got.filter(message => this.#isToGo(message, isGone))
      const leaving = new Set(gone)
      const staying = got.filter(message => !leaving.has(message))
      // A round that found nothing at its front has nothing to move either.
      if (gone.length > 0 || messageCount > got.length) await moveToEnd(channel, this.#queue, staying)
      else for (const message of staying) channel.nack(message, false, true)
      for (const message of gone) channel.ack(message)
      const { messageCount: left } = await channel.checkQueue(this.#queue) // also proves that the acks arrived
      this.#leftOfRound = got.length === 0 ? 0 : this.#leftOfRound - got.length
      return { looked: got.length, removed: gone.map(idOf), left }
    })
  }

  #isToGo(message: GetMessage, isGone: (id: string) => boolean): boolean {
    const id = idOf(message)
    // Somebody else's message: it is none of ours to remove.
    if (id === '') return false
    if (isGone(id) || this.#seen.has(id)) return true
    this.#seen.add(id)
    return false
  }
}

async function moveToEnd(channel: ConfirmChannel, queue: string, messages: readonly GetMessage[]): Promise<void> {
  for (const { content, properties } of messages) {
    const { contentType, messageId, type, headers } = properties
    channel.sendToQueue(queue, content, { persistent: true, contentType, messageId, type, headers })
  }
  await channel.waitForConfirms()
  for (const message of messages) channel.ack(message)
}

const idOf = ({ properties }: GetMessage): string => String(properties.headers?.['redrive-id'] ?? '')
