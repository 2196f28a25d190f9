// Publishing with confirms: a message counts as published when RabbitMQ says that it has it, on disk where the queue is
// durable. All messages of a call go out together and their confirms are awaited together.
import type { ChannelModel, ConfirmChannel } from 'amqplib'
import { type Clock, type Random, sleep } from '../../domain/clock.js'
import { isRedriveError } from '../../domain/errors.js'
import { brokerUnavailable, type Message } from '../broker.js'
import type { Link } from './rabbitmq-link.js'
import { ensureQueue, type QueueForm, queueName } from './rabbitmq-queues.js'

/** So many are on their way at once. */
const CHUNK = 1_000
const FIRST_PAUSE_MS = 50

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
  readonly #random: Random
  readonly #limitMs: number
  #open: Promise<Open> | undefined
  #sent = 0

  constructor(link: Link, form: QueueForm, clock: Clock, random: Random, limitMs: number) {
    this.#link = link
    this.#form = form
    this.#clock = clock
    this.#random = random
    this.#limitMs = limitMs
    link.follow({
      up: () => {},
      down: () => {
        this.#open = undefined
      },
    })
  }

  async publish(messages: readonly Message[]): Promise<void> {
    for (let from = 0; from < messages.length; from += CHUNK) {
      await this.#publishChunk(messages.slice(from, from + CHUNK), from > 0)
    }
  }

  /** What was surely not sent is tried again until the time is up. */
  async #publishChunk(messages: readonly Message[], someTaken: boolean): Promise<void> {
    const deadline = this.#clock.monotonic() + this.#limitMs
    for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs *= 2) {
      try {
        return await this.#tryOnce(messages, deadline - this.#clock.monotonic())
      } catch (error) {
        const leftMs = deadline - this.#clock.monotonic()
        const isUntaken = isRedriveError(error, 'BROKER_UNAVAILABLE') && error.details.taken === 'none'
        if (isUntaken && leftMs > pauseMs) await sleep(this.#clock, pauseMs * (0.5 + this.#random() / 2))
        else if (isUntaken && someTaken) throw brokerUnavailable('rabbitmq', 'took only some of them', 'unknown', error)
        else throw error
      }
    }
  }

  async #tryOnce(messages: readonly Message[], limitMs: number): Promise<void> {
    const giveUp = new AbortController()
    const late = sleep(this.#clock, limitMs, giveUp.signal).then(() => undefined)
    try {
      const ready = this.#ready(messages, limitMs)
      ready.catch(() => {})
      const open = await Promise.race([ready, late])
      if (!open) throw brokerUnavailable('rabbitmq', `is away: no connection within ${this.#limitMs} ms`, 'none')
      const confirmed = this.#sendAll(open, messages)
      confirmed.catch(() => {})
      const untaken = await Promise.race([confirmed, late])
      if (untaken === undefined) {
        throw brokerUnavailable('rabbitmq', `did not confirm within ${this.#limitMs} ms`, 'unknown')
      }
      if (untaken === 0) return
      open.known.clear()
      const taken = untaken === messages.length ? 'none' : 'unknown'
      throw brokerUnavailable('rabbitmq', 'has no such queue any more, or it is not ready', taken)
    } catch (error) {
      if (isRedriveError(error)) throw error
      throw brokerUnavailable('rabbitmq', `did not take it: ${(error as Error).message}`, 'unknown', error)
    } finally {
      giveUp.abort()
    }
  }

  /**
   * Resolves to how many no queue took: there is none, or, as with a quorum queue that somebody else is just making, it refused.
   * Nothing is sent on a channel that is closed.
   */
  #sendAll(open: Open, messages: readonly Message[]): Promise<number> {
    return new Promise((resolve, reject) => {
      let left = messages.length
      let untaken = 0
      const confirmed = (number: string, error: unknown) => {
        if (error && !isRefusal(error)) return void reject(error instanceof Error ? error : new Error(String(error)))
        if (error || (open.returned.size > 0 && open.returned.delete(number))) untaken += 1
        left -= 1
        if (left === 0) resolve(untaken)
      }
      let sent = 0
      try {
        for (; sent < messages.length; sent += 1) this.#send(open, messages[sent] as Message, confirmed)
      } catch (error) {
        const taken = sent === 0 ? 'none' : 'unknown'
        reject(brokerUnavailable('rabbitmq', `is away: ${(error as Error).message}`, taken, error))
      }
    })
  }

  /** A channel on which every queue of these messages is known. Nothing is sent before. */
  async #ready(messages: readonly Message[], limitMs: number): Promise<Open> {
    const model = this.#link.model ?? (await this.#link.within(limitMs))
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

  #send(
    { channel }: Open,
    { queue, priority, headers, body }: Message,
    confirmed: (number: string, error: unknown) => void,
  ): void {
    this.#sent += 1
    const number = String(this.#sent)
    // AMQP has places of its own for the id and the name.
    const { 'redrive-id': messageId = '', 'redrive-name': type = '', ...others } = headers
    const options = {
      persistent: true,
      mandatory: true,
      priority,
      contentType: 'application/json',
      messageId,
      correlationId: number,
      type,
      headers: others,
    }
    channel.sendToQueue(queueName(this.#form, queue), Buffer.from(body), options, error => confirmed(number, error))
  }
}

/** A basic.nack, as amqplib says it; any other error is of the channel or the connection. */
const isRefusal = (error: unknown): boolean => error instanceof Error && error.message === 'message nacked'
