// Taking from RabbitMQ: a line for each of a worker's queues, with channels of its own, so that what is done about one queue
// is nothing to the others.
import { type Clock, type Random, waitAtMost } from '../../domain/clock.js'
import type { BrokerConsumeOptions, BrokerConsumer, Delivery } from '../broker.js'
import type { RabbitDelivery } from './rabbitmq-delivery.js'
import { RabbitLine } from './rabbitmq-line.js'
import type { Link } from './rabbitmq-link.js'
import type { QueueForm } from './rabbitmq-queues.js'

const CLOSE_LIMIT_MS = 2_000

export class RabbitConsumer implements BrokerConsumer {
  readonly #lines: ReadonlyMap<string, RabbitLine>
  readonly #clock: Clock
  readonly #unfollow: () => void

  constructor(link: Link, form: QueueForm, options: BrokerConsumeOptions, clock: Clock, random: Random) {
    const { queues, onWake, onLost, onError } = options
    const prefetch = shareOf(options.prefetch, queues.length)
    const common = { form, prefetch, onWake, onLost, onError, clock, random }
    this.#lines = new Map(queues.map(queue => [queue, new RabbitLine({ ...common, queue })]))
    this.#clock = clock
    this.#unfollow = link.follow({
      up: model => {
        for (const line of this.#lines.values()) line.up(model)
      },
      down: () => {
        for (const line of this.#lines.values()) line.down()
      },
    })
  }

  take(queue: string, limit: number): Delivery[] {
    return this.#lines.get(queue)?.take(limit) ?? []
  }

  arrived(queue: string): number {
    return this.#lines.get(queue)?.arrived ?? 0
  }

  /** Of nothing: resolves when all that will come after a pause has arrived. */
  async acknowledge(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    if (deliveries.length === 0) {
      await Promise.all([...this.#lines.values()].map(line => line.adjusted()))
      return []
    }
    const byLine = new Map<RabbitLine, RabbitDelivery[]>()
    for (const delivery of deliveries as readonly RabbitDelivery[]) {
      const line = this.#lines.get(delivery.queue) as RabbitLine
      const sameLine = byLine.get(line)
      if (sameLine) sameLine.push(delivery)
      else byLine.set(line, [delivery])
    }
    return (await Promise.all([...byLine].map(([line, own]) => line.acknowledge(own)))).flat()
  }

  async giveBack(deliveries: readonly Delivery[]): Promise<void> {
    for (const delivery of deliveries as readonly RabbitDelivery[]) this.#lines.get(delivery.queue)?.giveBack(delivery)
  }

  setPaused(queue: string, paused: boolean): void {
    this.#lines.get(queue)?.setPaused(paused)
  }

  setPrefetch(prefetch: number): void {
    for (const line of this.#lines.values()) line.setPrefetch(shareOf(prefetch, this.#lines.size))
  }

  async close(): Promise<void> {
    this.#unfollow()
    const closed = Promise.all([...this.#lines.values()].map(line => line.close()))
    await waitAtMost(this.#clock, CLOSE_LIMIT_MS, closed)
  }
}

const shareOf = (prefetch: number, lines: number): number => Math.max(1, Math.ceil(prefetch / lines))
