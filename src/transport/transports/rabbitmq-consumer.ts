// Taking from RabbitMQ: one channel for a worker, with one consumer for each of its queues. What arrives waits here until
// it is taken. An acknowledgement has no answer; a question on the same channel that is answered proves that it arrived,
// because a channel keeps its order.
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import type { Clock, Random, Timer } from '../../domain/clock.js'
import type { BrokerConsumeOptions, BrokerConsumer, Delivery } from '../broker.js'
import { RabbitDelivery } from './rabbitmq-delivery.js'
import type { Link } from './rabbitmq-link.js'
import { ensureQueue, type QueueForm, queueName } from './rabbitmq-queues.js'

interface Line {
  readonly queue: string
  arrived: RabbitDelivery[]
  paused: boolean
  tag: string | undefined
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 5_000
const CLOSE_LIMIT_MS = 2_000

export class RabbitConsumer implements BrokerConsumer {
  readonly #options: BrokerConsumeOptions
  readonly #form: QueueForm
  readonly #clock: Clock
  readonly #random: Random
  readonly #lines: ReadonlyMap<string, Line>
  readonly #unfollow: () => void
  /** In our hands: taken or waiting here, and not acknowledged. */
  readonly #held = new Set<RabbitDelivery>()
  #prefetch: number
  #model: ChannelModel | undefined
  #channel: Channel | undefined
  #failures = 0
  #retry: Timer | undefined
  #closed = false
  #changes: Promise<unknown> = Promise.resolve()
  #asking: Promise<boolean> | undefined
  #askNext: Promise<boolean> | undefined

  constructor(link: Link, form: QueueForm, options: BrokerConsumeOptions, clock: Clock, random: Random) {
    this.#options = options
    this.#form = form
    this.#clock = clock
    this.#random = random
    this.#prefetch = options.prefetch
    this.#lines = new Map(
      options.queues.map(queue => [queue, { queue, arrived: [], paused: false, tag: undefined } as Line]),
    )
    this.#unfollow = link.follow({ up: model => this.#up(model), down: () => this.#gone(this.#channel) })
  }

  take(queue: string, limit: number): Delivery[] {
    const line = this.#lines.get(queue)
    if (!line || line.arrived.length === 0 || limit < 1) return []
    if (line.arrived.length > limit) return line.arrived.splice(0, limit)
    const all = line.arrived
    line.arrived = []
    return all
  }

  arrived(queue: string): number {
    return this.#lines.get(queue)?.arrived.length ?? 0
  }

  /** Of nothing: resolves when all that was on its way before a pause has arrived. */
  async acknowledge(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    if (deliveries.length === 0) await this.#changes
    const channel = this.#channel
    const lost: Delivery[] = []
    const sent: RabbitDelivery[] = []
    for (const delivery of deliveries as readonly RabbitDelivery[]) {
      if (delivery.channel !== channel || delivery.settled || !this.#held.has(delivery)) lost.push(delivery)
      else {
        delivery.settled = true
        sent.push(delivery)
      }
    }
    if (!channel || (sent.length === 0 && lost.length > 0)) return lost
    this.#send(channel, sent)
    return (await this.#proven(channel)) ? lost : [...lost, ...sent]
  }

  /** One word for all up to the first that is not settled, and one for each of the others. */
  #send(channel: Channel, settled: readonly RabbitDelivery[]): void {
    let last: RabbitDelivery | undefined
    for (const delivery of this.#held) {
      if (!delivery.settled) break
      last = delivery
      this.#held.delete(delivery)
    }
    if (last) channel.ack(last.message, true)
    for (const delivery of settled) if (this.#held.delete(delivery)) channel.ack(delivery.message)
  }

  /** Whether all that was said on the channel by now has arrived. Whoever asks while a question is under way shares the next. */
  #proven(channel: Channel): Promise<boolean> {
    if (!this.#asking) return this.#ask(channel)
    this.#askNext ??= this.#asking.then(() => {
      this.#askNext = undefined
      return this.#ask(channel)
    })
    return this.#askNext
  }

  #ask(channel: Channel): Promise<boolean> {
    // An answer to one who asks on a channel that is gone would be an answer of another channel.
    if (channel !== this.#channel) return Promise.resolve(false)
    this.#asking = channel
      .prefetch(this.#perQueue)
      .then(
        () => true,
        () => false,
      )
      .finally(() => {
        this.#asking = undefined
      })
    return this.#asking
  }

  async giveBack(deliveries: readonly Delivery[]): Promise<void> {
    for (const delivery of deliveries as readonly RabbitDelivery[]) {
      if (delivery.channel === this.#channel && !delivery.settled && this.#held.delete(delivery)) {
        this.#channel?.nack(delivery.message, false, true)
      }
    }
  }

  setPaused(queue: string, paused: boolean): void {
    const line = this.#lines.get(queue)
    if (!line || line.paused === paused) return
    line.paused = paused
    this.#change(async channel => {
      if (line.paused) await this.#cancel(channel, line)
      else if (line.tag === undefined) await this.#consume(channel, line)
    })
  }

  setPrefetch(prefetch: number): void {
    if (prefetch === this.#prefetch) return
    this.#prefetch = prefetch
    this.#change(async channel => {
      // A consumer keeps the limit it began with.
      await channel.prefetch(this.#perQueue)
      for (const line of this.#lines.values()) {
        if (line.tag === undefined) continue
        await this.#cancel(channel, line)
        await this.#consume(channel, line)
      }
    })
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#retry?.cancel()
    this.#unfollow()
    const channel = this.#channel
    this.#channel = undefined
    this.#forget()
    if (!channel) return
    // Whatever was not acknowledged goes back when the channel ends.
    await new Promise<void>(resolve => {
      const timer = this.#clock.timer(CLOSE_LIMIT_MS, resolve)
      const done = () => {
        timer.cancel()
        resolve()
      }
      channel.close().then(done, done)
    })
  }

  get #perQueue(): number {
    return Math.max(1, Math.ceil(this.#prefetch / this.#lines.size))
  }

  #up(model: ChannelModel): void {
    this.#model = model
    this.#failures = 0
    this.#openSoon(0)
  }

  #openSoon(delayMs: number): void {
    this.#retry?.cancel()
    this.#retry = this.#clock.timer(delayMs, () => void this.#open(), { background: true })
  }

  async #open(): Promise<void> {
    const model = this.#model
    if (this.#closed || !model || this.#channel) return
    let channel: Channel | undefined
    try {
      channel = await model.createChannel()
      const opened = channel
      opened.on('error', error => this.#options.onError(error))
      opened.on('close', () => this.#gone(opened))
      if (this.#closed || this.#model !== model) return void opened.close().catch(() => {})
      this.#channel = opened
      await opened.prefetch(this.#perQueue)
      for (const line of this.#lines.values()) {
        await ensureQueue(opened, this.#form, line.queue)
        if (!line.paused) await this.#consume(opened, line)
      }
      this.#failures = 0
    } catch (error) {
      if (this.#closed) return
      this.#options.onError(error)
      if (channel) channel.close().catch(() => {})
      this.#gone(channel)
    }
  }

  async #consume(channel: Channel, line: Line): Promise<void> {
    const onMessage = (message: ConsumeMessage | null) => {
      if (message) this.#arrive(channel, line, message)
      else this.#cancelledByServer(channel, line)
    }
    const { consumerTag } = await channel.consume(queueName(this.#form, line.queue), onMessage)
    line.tag = consumerTag
  }

  async #cancel(channel: Channel, line: Line): Promise<void> {
    const { tag } = line
    line.tag = undefined
    if (tag !== undefined) await channel.cancel(tag)
  }

  #arrive(channel: Channel, line: Line, message: ConsumeMessage): void {
    if (channel !== this.#channel) return
    const delivery = new RabbitDelivery(line.queue, message, channel)
    this.#held.add(delivery)
    line.arrived.push(delivery)
    this.#options.onWake()
  }

  /** The queue was deleted, or its leader is moving: the channel is opened anew, which makes or finds it again. */
  #cancelledByServer(channel: Channel, line: Line): void {
    line.tag = undefined
    this.#options.onError(new Error(`RabbitMQ stopped delivering from "${queueName(this.#form, line.queue)}"`))
    channel.close().catch(() => {})
    this.#gone(channel)
  }

  /** One change of consumers after the other; one that fails with its channel is made up for when that is opened again. */
  #change(make: (channel: Channel) => Promise<void>): void {
    const change = async () => {
      const channel = this.#channel
      if (channel) await make(channel)
    }
    this.#changes = this.#changes.then(change).catch(error => {
      if (!this.#closed) this.#options.onError(error)
    })
  }

  #gone(channel: Channel | undefined): void {
    if (channel !== this.#channel || this.#closed) return
    this.#channel = undefined
    const lost = this.#forget()
    if (lost.length > 0) this.#options.onLost(lost)
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(this.#failures, 10))
    this.#failures += 1
    this.#openSoon(pauseMs * (0.5 + this.#random() / 2))
  }

  /** Everything in our hands is anyone's now. Returns what had been taken. */
  #forget(): RabbitDelivery[] {
    const untaken = new Set<RabbitDelivery>()
    for (const line of this.#lines.values()) {
      for (const delivery of line.arrived) untaken.add(delivery)
      line.arrived = []
      line.tag = undefined
    }
    const lost = [...this.#held].filter(delivery => !untaken.has(delivery))
    this.#held.clear()
    return lost
  }
}
