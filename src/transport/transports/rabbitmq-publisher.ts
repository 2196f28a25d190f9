// Publishing with confirms: a message counts as published when RabbitMQ says that it has it, on disk where the queue is
// durable. All messages of a call go out together and their confirms are awaited together.
import type { ChannelModel, ConfirmChannel } from 'amqplib'
import { type Clock, sleep } from '../../domain/clock.js'
import { isRedriveError } from '../../domain/errors.js'
import { brokerUnavailable, type Message } from '../broker.js'
import type { Link } from './rabbitmq-link.js'
import { ensureQueue, type QueueForm, queueName } from './rabbitmq-queues.js'

/** So many are on their way at once. */
const CHUNK = 1_000

interface Open {
  readonly model: ChannelModel
  readonly channel: ConfirmChannel
  readonly known: Set<string>
  /** Messages that no queue took, by their number in here. */
  readonly returned: Set<string>
}

export class Publisher {
  readonly #link: Link
  readonly #form: QueueForm
  readonly #clock: Clock
  readonly #limitMs: number
  #open: Promise<Open> | undefined
  #sent = 0

  constructor(link: Link, form: QueueForm, clock: Clock, limitMs: number) {
    this.#link = link
    this.#form = form
    this.#clock = clock
    this.#limitMs = limitMs
    link.follow({
      up: () => {},
      down: () => {
        this.#open = undefined
      },
    })
  }

  /** Messages by the queue's own name in RabbitMQ, once it is known to be there. */
  async publish(messages: readonly Message[]): Promise<void> {
    for (let from = 0; from < messages.length; from += CHUNK) {
      await this.#publishChunk(messages.slice(from, from + CHUNK), from > 0)
    }
  }

  async #publishChunk(messages: readonly Message[], someTaken: boolean): Promise<void> {
    const none = someTaken ? 'unknown' : 'none'
    const giveUp = new AbortController()
    const late = sleep(this.#clock, this.#limitMs, giveUp.signal).then(() => undefined)
    try {
      const ready = this.#ready(messages)
      ready.catch(() => {})
      const open = await Promise.race([ready, late])
      if (!open) throw brokerUnavailable('rabbitmq', `is away: no connection within ${this.#limitMs} ms`, none)
      const confirmed = Promise.all(messages.map(message => this.#send(open, message)))
      confirmed.catch(() => {})
      const unrouted = await Promise.race([confirmed, late])
      if (!unrouted) throw brokerUnavailable('rabbitmq', `did not confirm within ${this.#limitMs} ms`, 'unknown')
      if (unrouted.some(Boolean)) {
        open.known.clear()
        const all = unrouted.every(Boolean)
        throw brokerUnavailable('rabbitmq', 'has no such queue any more; the next try makes it', all ? none : 'unknown')
      }
    } catch (error) {
      if (isRedriveError(error)) throw error
      throw brokerUnavailable('rabbitmq', `did not take it: ${(error as Error).message}`, 'unknown', error)
    } finally {
      giveUp.abort()
    }
  }

  /** A channel on which every queue of these messages is known. Nothing is sent before. */
  async #ready(messages: readonly Message[]): Promise<Open> {
    const model = this.#link.model ?? (await this.#link.within(this.#limitMs))
    if (!model) throw brokerUnavailable('rabbitmq', `is away: no connection within ${this.#limitMs} ms`, 'none')
    try {
      this.#open ??= this.#openChannel(model)
      const open = await this.#open
      for (const { queue } of messages) {
        if (open.known.has(queue)) continue
        await ensureQueue(open.channel, this.#form, queue)
        open.known.add(queue)
      }
      return open
    } catch (error) {
      if (isRedriveError(error)) throw error
      throw brokerUnavailable('rabbitmq', `is not ready: ${(error as Error).message}`, 'none', error)
    }
  }

  async #openChannel(model: ChannelModel): Promise<Open> {
    const channel = await model.createConfirmChannel()
    const open: Open = { model, channel, known: new Set(), returned: new Set() }
    channel.on('error', () => {}) // its close follows, and every confirm that is awaited fails with it
    channel.on('close', () => {
      this.#open = undefined
    })
    channel.on('return', ({ properties }) => void open.returned.add(String(properties.correlationId)))
    return open
  }

  /** Resolves to true if no queue took it. */
  #send({ channel, returned }: Open, { queue, priority, headers, body }: Message): Promise<boolean> {
    this.#sent += 1
    const number = String(this.#sent)
    const options = {
      persistent: true,
      mandatory: true,
      priority,
      contentType: 'application/json',
      messageId: headers['redrive-id'] ?? '',
      correlationId: number,
      type: headers['redrive-name'] ?? '',
      headers,
    }
    return new Promise((resolve, reject) => {
      channel.sendToQueue(queueName(this.#form, queue), Buffer.from(body), options, error => {
        if (error) reject(error instanceof Error ? error : new Error('RabbitMQ refused it'))
        else resolve(returned.delete(number))
      })
    })
  }
}
