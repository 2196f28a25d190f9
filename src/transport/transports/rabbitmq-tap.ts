// One channel of RabbitMQ that brings from one queue. It can be opened wider, and it can be shut; a tap that was shut is never
// opened again. A quorum queue forgets to bring what was on its way to a consumer that is cancelled, and gives it to others
// only when the channel ends: so a tap that was shut ends its channel as soon as nobody has anything of it in hand.
//
// An acknowledgement has no answer; a question on the same channel that is answered proves that it arrived, because a channel
// keeps its order.
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { RabbitDelivery } from './rabbitmq-delivery.js'
import { ensureQueue, type QueueForm, queueName } from './rabbitmq-queues.js'

export interface TapOptions {
  readonly form: QueueForm
  readonly queue: string
  readonly prefetch: number
  readonly onDelivery: (delivery: RabbitDelivery) => void
  readonly onError: (error: unknown) => void
  /** The channel is gone and nobody here has ended it: these were in our hands. */
  readonly onGone: (tap: RabbitTap, held: readonly RabbitDelivery[]) => void
  /** Nothing of it is in our hands, and nothing more will come. */
  readonly onDry: (tap: RabbitTap) => void
}

export class RabbitTap {
  readonly channel: Channel
  readonly #options: TapOptions
  /** In our hands: arrived, and not acknowledged. In the order of their delivery tags. */
  readonly #held = new Set<RabbitDelivery>()
  readonly #tags: string[] = []
  #prefetch = 0
  /** `shutting`: something may still be on its way. */
  #state: 'open' | 'shutting' | 'shut' | 'ended' = 'open'
  #asking: Promise<boolean> | undefined
  #askNext: Promise<boolean> | undefined

  private constructor(channel: Channel, options: TapOptions) {
    this.channel = channel
    this.#options = options
  }

  static async open(model: ChannelModel, options: TapOptions): Promise<RabbitTap> {
    const channel = await model.createChannel()
    const tap = new RabbitTap(channel, options)
    channel.on('error', error => options.onError(error))
    channel.on('close', () => tap.gone())
    try {
      await ensureQueue(channel, options.form, options.queue)
      await tap.widen(options.prefetch)
      return tap
    } catch (error) {
      await tap.end()
      throw error
    }
  }

  /** So many may be in our hands at once. */
  get prefetch(): number {
    return this.#prefetch
  }

  /** A consumer keeps the limit it began with, so one more consumer brings what is allowed beyond that of the others. */
  async widen(prefetch: number): Promise<void> {
    const more = prefetch - this.#prefetch
    const name = queueName(this.#options.form, this.#options.queue)
    const onMessage = (message: ConsumeMessage | null) => (message ? this.#arrive(message) : this.#cancelledByServer())
    // Said in one breath: a question in between would change the limit.
    const saying = () => Promise.all([this.channel.prefetch(more), this.channel.consume(name, onMessage)])
    const [, { consumerTag }] = await this.#orAbandon(saying)
    this.#prefetch = prefetch
    this.#tags.push(consumerTag)
  }

  /** Brings nothing more, and ends with the last that is in our hands. Resolves when all that will come has come. */
  async shut(): Promise<void> {
    if (this.#state !== 'open') return
    this.#state = 'shutting'
    await this.#orAbandon(() => Promise.all(this.#tags.map(tag => this.channel.cancel(tag))))
    this.#becomeShut()
  }

  #becomeShut(): void {
    if (this.#state !== 'shutting') return
    this.#state = 'shut'
    this.#endIfDry()
  }

  /** Whatever was not acknowledged goes back. */
  async end(): Promise<void> {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    this.#held.clear()
    await closeQuietly(this.channel)
  }

  get hasEnded(): boolean {
    return this.#state === 'ended'
  }

  gone(): void {
    if (this.#state === 'ended') return
    this.#state = 'ended'
    const held = [...this.#held]
    this.#held.clear()
    this.#options.onGone(this, held)
  }

  /** Resolves to those whose acknowledgement did not count. */
  async acknowledge(deliveries: readonly RabbitDelivery[]): Promise<RabbitDelivery[]> {
    const lost: RabbitDelivery[] = []
    const sent: RabbitDelivery[] = []
    for (const delivery of deliveries) {
      if (delivery.settled || !this.#held.has(delivery)) lost.push(delivery)
      else {
        delivery.settled = true
        sent.push(delivery)
      }
    }
    if (sent.length === 0) return lost
    this.#send(sent)
    return (await this.#proven()) ? lost : [...lost, ...sent]
  }

  giveBack(delivery: RabbitDelivery): void {
    if (delivery.settled || !this.#held.delete(delivery)) return
    this.channel.nack(delivery.message, false, true)
    this.#endIfDry()
  }

  /** One word for all up to the first that is not settled, and one for each of the others. */
  #send(settled: readonly RabbitDelivery[]): void {
    let last: RabbitDelivery | undefined
    for (const delivery of this.#held) {
      if (!delivery.settled) break
      last = delivery
      this.#held.delete(delivery)
    }
    if (last) this.channel.ack(last.message, true)
    for (const delivery of settled) if (this.#held.delete(delivery)) this.channel.ack(delivery.message)
  }

  /** Whether all that was said on the channel by now has arrived. Whoever asks while a question is under way shares the next. */
  #proven(): Promise<boolean> {
    if (!this.#asking) return this.#ask()
    this.#askNext ??= this.#asking.then(() => {
      this.#askNext = undefined
      return this.#ask()
    })
    return this.#askNext
  }

  #ask(): Promise<boolean> {
    if (this.#state === 'ended') return Promise.resolve(false)
    this.#asking = this.channel.prefetch(this.#prefetch).then(
      () => this.#answered(true),
      () => this.#answered(false),
    )
    return this.#asking
  }

  #answered(heard: boolean): boolean {
    this.#asking = undefined
    this.#endIfDry()
    return heard
  }

  #endIfDry(): void {
    // An answer that is still awaited would never come.
    if (this.#state !== 'shut' || this.#held.size > 0 || this.#asking || this.#askNext) return
    this.#options.onDry(this)
    void this.end()
  }

  #arrive(message: ConsumeMessage): void {
    if (this.#state === 'ended') return
    const delivery = new RabbitDelivery(this.#options.queue, message, this.channel)
    this.#held.add(delivery)
    this.#options.onDelivery(delivery)
  }

  /** The queue was deleted, or its leader is moving: the next tap makes or finds it again. */
  #cancelledByServer(): void {
    if (this.#state === 'ended') return
    const name = queueName(this.#options.form, this.#options.queue)
    this.#options.onError(new Error(`RabbitMQ stopped delivering from "${name}"`))
    this.abandon()
  }

  /** A channel that does not do as it is told is of no use any more. */
  async #orAbandon<T>(say: () => Promise<T>): Promise<T> {
    try {
      return await say()
    } catch (error) {
      this.abandon()
      throw error
    }
  }

  /** Whatever came of it goes back. */
  abandon(): void {
    void closeQuietly(this.channel)
    this.gone()
  }
}

/** One that is closed already says so by throwing. */
async function closeQuietly(channel: Channel): Promise<void> {
  try {
    await channel.close()
  } catch {}
}
