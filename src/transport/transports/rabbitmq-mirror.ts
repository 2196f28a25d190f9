// The queue that shows dead letters. RabbitMQ cannot delete a message by its id, so what is gone is found by going through
// the queue: each message is got; one that is gone is acknowledged, and any other is published again at the end before the
// old copy is acknowledged. A crash in between leaves two copies, and the next round takes the second one out.
import type { ConfirmChannel, GetMessage } from 'amqplib'
import type { MirrorQueue } from '../broker.js'
import type { Control } from './rabbitmq-control.js'
import { ensureMirror, type QueueForm } from './rabbitmq-queues.js'

type Shown = Parameters<MirrorQueue['add']>[0][number]

export class RabbitMirror implements MirrorQueue {
  readonly name: string
  readonly #control: Control
  readonly #form: QueueForm
  /** Ids seen since this round through the queue began. */
  #seen = new Set<string>()

  constructor(control: Control, form: QueueForm, name: string) {
    this.#control = control
    this.#form = form
    this.name = name
  }

  add(messages: readonly Shown[]): Promise<void> {
    return this.#control.use(async channel => {
      await ensureMirror(channel, this.#form, this.name)
      for (const { headers, body } of messages) {
        const { 'redrive-id': messageId = '', 'redrive-name': type = '' } = headers
        const about = { persistent: true, contentType: 'application/json', messageId, type, headers }
        channel.sendToQueue(this.name, Buffer.from(body), about)
      }
      await channel.waitForConfirms()
    })
  }

  beginRound(): Promise<number> {
    this.#seen = new Set()
    return this.#control.use(async channel => {
      await ensureMirror(channel, this.#form, this.name)
      return (await channel.checkQueue(this.name)).messageCount
    })
  }

  sweep(limit: number, gone: (ids: readonly string[]) => Promise<ReadonlySet<string>>) {
    return this.#control.use(async channel => {
      const got: GetMessage[] = []
      while (got.length < limit) {
        const message = await channel.get(this.name)
        if (!message) break
        got.push(message)
      }
      const isGone = await gone(got.map(idOf).filter(id => id !== ''))
      const leaving = got.filter(message => this.#leaves(message, isGone))
      const left = new Set(leaving)
      await moveToEnd(
        channel,
        this.name,
        got.filter(message => !left.has(message)),
      )
      for (const message of leaving) channel.ack(message)
      await channel.checkQueue(this.name) // answered, so the acknowledgements have arrived
      return { looked: got.length, removed: leaving.map(idOf) }
    })
  }

  /** What carries no id of ours is somebody else's message, and none of ours to remove. */
  #leaves(message: GetMessage, gone: ReadonlySet<string>): boolean {
    const id = idOf(message)
    if (id === '') return false
    if (gone.has(id) || this.#seen.has(id)) return true
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
