// A queue of RabbitMQ that a worker takes from. What arrives waits here until it is taken. There is one tap that brings, unless
// the queue is paused or the broker is away, and beside it those that were shut while something of theirs was in our hands.
import type { Channel, ChannelModel } from 'amqplib'
import type { Clock, Random, Timer } from '../../domain/clock.js'
import type { BrokerConsumeOptions } from '../broker.js'
import type { RabbitDelivery } from './rabbitmq-delivery.js'
import type { QueueForm } from './rabbitmq-queues.js'
import { RabbitTap, type TapOptions } from './rabbitmq-tap.js'

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000

export interface LineOptions extends Pick<BrokerConsumeOptions, 'onWake' | 'onLost' | 'onError'> {
  readonly queue: string
  readonly form: QueueForm
  readonly prefetch: number
  readonly clock: Clock
  readonly random: Random
}

export class RabbitLine {
  readonly #options: LineOptions
  readonly #taps = new Map<Channel, RabbitTap>()
  #tap: RabbitTap | undefined
  #arrived: RabbitDelivery[] = []
  #model: ChannelModel | undefined
  #paused = false
  #prefetch: number
  #closed = false
  #failures = 0
  #retry: Timer | undefined
  #adjusting: Promise<void> | undefined
  #again = false

  constructor(options: LineOptions) {
    this.#options = options
    this.#prefetch = options.prefetch
  }

  get arrived(): number {
    return this.#arrived.length
  }

  take(limit: number): RabbitDelivery[] {
    if (limit < 1) return []
    if (this.#arrived.length > limit) return this.#arrived.splice(0, limit)
    const all = this.#arrived
    this.#arrived = []
    return all
  }

  up(model: ChannelModel): void {
    this.#model = model
    this.#failures = 0
    this.#adjustSoon(0)
  }

  down(): void {
    this.#model = undefined
    for (const tap of this.#taps.values()) tap.gone()
  }

  setPaused(paused: boolean): void {
    if (paused === this.#paused) return
    this.#paused = paused
    this.#adjust()
  }

  setPrefetch(prefetch: number): void {
    if (prefetch === this.#prefetch) return
    this.#prefetch = prefetch
    this.#adjust()
  }

  /** Resolves when what was said of pausing and of prefetch is so. */
  async adjusted(): Promise<void> {
    await this.#adjusting
  }

  async acknowledge(deliveries: readonly RabbitDelivery[]): Promise<RabbitDelivery[]> {
    const byChannel = new Map<Channel, RabbitDelivery[]>()
    for (const delivery of deliveries) {
      const sameChannel = byChannel.get(delivery.channel)
      if (sameChannel) sameChannel.push(delivery)
      else byChannel.set(delivery.channel, [delivery])
    }
    const asked = [...byChannel].map(([channel, own]) => this.#taps.get(channel)?.acknowledge(own) ?? own)
    return (await Promise.all(asked)).flat()
  }

  giveBack(delivery: RabbitDelivery): void {
    this.#taps.get(delivery.channel)?.giveBack(delivery)
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#retry?.cancel()
    this.#arrived = []
    const taps = [...this.#taps.values()]
    this.#taps.clear()
    await Promise.all(taps.map(tap => tap.end()))
  }

  /** One change after the other, until everything is as it was said last. */
  #adjust(): void {
    this.#again = true
    this.#adjusting ??= Promise.resolve().then(async () => {
      while (this.#again && !this.#closed) {
        this.#again = false
        await this.#step().catch(error => this.#failed(error))
      }
      this.#adjusting = undefined
    })
  }

  #adjustSoon(delayMs: number): void {
    this.#retry?.cancel()
    this.#retry = this.#options.clock.timer(
      delayMs,
      () => {
        this.#retry = undefined
        this.#adjust()
      },
      { background: true },
    )
  }

  async #step(): Promise<void> {
    const tap = this.#tap
    if (tap && (this.#paused || tap.prefetch > this.#prefetch)) {
      this.#tap = undefined
      this.#again = true
      await tap.shut()
    } else if (tap && tap.prefetch < this.#prefetch) {
      this.#again = true
      await tap.widen(this.#prefetch)
    } else if (!tap && !this.#paused && this.#model && !this.#retry) {
      this.#again = true
      await this.#open(this.#model)
    }
  }

  async #open(model: ChannelModel): Promise<void> {
    const { form, queue, onWake, onError } = this.#options
    const options: TapOptions = {
      form,
      queue,
      prefetch: this.#prefetch,
      onDelivery: delivery => {
        this.#arrived.push(delivery)
        onWake()
      },
      onError,
      onGone: (gone, held) => this.#gone(gone, held),
      onDry: dry => void this.#taps.delete(dry.channel),
    }
    const tap = await RabbitTap.open(model, options)
    if (this.#closed || this.#model !== model) return tap.abandon()
    if (tap.hasEnded) throw new Error(`RabbitMQ closed the channel of "${queue}"`)
    this.#failures = 0
    this.#tap = tap
    this.#taps.set(tap.channel, tap)
  }

  /** A tap that failed is gone; the next one makes up for it. */
  #failed(error: unknown): void {
    if (this.#closed) return
    this.#options.onError(error)
    this.#again = false
    if (!this.#retry) this.#backOff()
  }

  #gone(tap: RabbitTap, held: readonly RabbitDelivery[]): void {
    this.#taps.delete(tap.channel)
    if (this.#closed) return
    const mine = new Set(held)
    const untaken = new Set(this.#arrived.filter(delivery => mine.has(delivery)))
    this.#arrived = this.#arrived.filter(delivery => !untaken.has(delivery))
    const lost = held.filter(delivery => !untaken.has(delivery))
    if (lost.length > 0) this.#options.onLost(lost)
    if (tap !== this.#tap) return
    this.#tap = undefined
    this.#backOff()
  }

  #backOff(): void {
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10))
    this.#failures += 1
    this.#adjustSoon(pauseMs * (0.5 + this.#options.random() / 2))
  }
}
