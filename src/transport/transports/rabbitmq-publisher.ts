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
      const unrouted = await Promise.race([confirmed, late])
      if (!unrouted) throw brokerUnavailable('rabbitmq', `did not confirm within ${this.#limitMs} ms`, 'unknown')
      if (!unrouted.some(Boolean)) return
      open.known.clear()
      const taken = unrouted.every(Boolean) ? 'none' : 'unknown'
      throw brokerUnavailable('rabbitmq', 'has no such queue any more; it is made again', taken)
    } catch (error) {
      if (isRedriveError(error)) throw error
      throw brokerUnavailable('rabbitmq', `did not take it: ${(error as Error).message}`, 'unknown', error)
    } finally {
      giveUp.abort()
    }
  }

  /** Says of each whether no queue took it. Nothing is sent on a channel that is closed. */
  #sendAll(open: Open, messages: readonly Message[]): Promise<boolean[]> {
    const confirms: Promise<boolean>[] = []
    try {
      for (const message of messages) confirms.push(this.#send(open, message))
    } catch (error) {
      for (const confirm of confirms) confirm.catch(() => {})
      const taken = confirms.length === 0 ? 'none' : 'unknown'
      throw brokerUnavailable('rabbitmq', `is away: ${(error as Error).message}`, taken, error)
    }
    return Promise.all(confirms)
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
    let settle: (error: unknown) => void = () => {}
    const confirmed = new Promise<boolean>((resolve, reject) => {
      settle = error => {
        if (error) reject(error instanceof Error ? error : new Error('RabbitMQ refused it'))
        else resolve(returned.delete(number))
      }
    })
    channel.sendToQueue(queueName(this.#form, queue), Buffer.from(body), options, settle)
    return confirmed
  }
}
