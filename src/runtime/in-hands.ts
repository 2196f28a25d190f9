// What a worker has received from brokers and not settled: found by claim, by delivery and by job. Remembers the last jobs
// that succeeded, for the case that one of them comes again.
import type { JobId, Lease } from '../domain/ids.js'
import type { Settlement } from '../domain/settlement.js'
import type { BrokerConsumer, Delivery } from '../transport/broker.js'
import type { CarriedJob } from '../transport/envelope.js'
import type { Arrival } from './arrivals.js'

export interface InHand extends Arrival {
  readonly job: CarriedJob
  readonly lease: Lease
  readonly consumer: BrokerConsumer
  /** What its worker's definition says it calls. */
  readonly service: string | undefined
  /** Undefined: the right to it is gone. */
  delivery: Delivery | undefined
  taken: boolean
  /** It was said that it succeeded. */
  ended?: true
  /** Its end is being written: from now on that is all there is to do. */
  settling?: true
  /** Being taken into the ledger as running. */
  adopting?: Promise<void>
  /** Its claim in the ledger, by which it is settled from then on. */
  adopted?: Lease
}

const MOST_REMEMBERED = 10_000

export class InHands {
  readonly #byLease = new Map<Lease, InHand>()
  readonly #byDelivery = new Map<Delivery, InHand>()
  readonly #taken = new Map<JobId, InHand>()
  readonly #succeeded = new Set<JobId>()

  get size(): number {
    return this.#byLease.size
  }

  add(hand: InHand): void {
    this.#byLease.set(hand.lease, hand)
    if (hand.delivery) this.#byDelivery.set(hand.delivery, hand)
  }

  take(hand: InHand): void {
    hand.taken = true
    this.#taken.set(hand.job.id, hand)
  }

  get(lease: Lease): InHand | undefined {
    return this.#byLease.get(lease)
  }

  /** One job's claim does not open another job. */
  find({ id, lease }: Settlement): InHand | undefined {
    const hand = this.#byLease.get(lease)
    return hand?.job.id === id ? hand : undefined
  }

  of(deliveries: readonly Delivery[]): InHand[] {
    return deliveries.flatMap(delivery => this.#byDelivery.get(delivery) ?? [])
  }

  /** The right to it is gone. */
  lose(hand: InHand): void {
    if (hand.delivery) this.#byDelivery.delete(hand.delivery)
    hand.delivery = undefined
  }

  forget(hand: InHand | undefined): void {
    if (!hand) return
    this.#byLease.delete(hand.lease)
    if (this.#taken.get(hand.job.id) === hand) this.#taken.delete(hand.job.id)
    if (hand.delivery) this.#byDelivery.delete(hand.delivery)
  }

  /** Jobs that run here, or whose ends are being written. */
  taken(): JobId[] {
    return [...this.#taken.keys()]
  }

  standing(id: JobId): 'running' | 'succeeded' | undefined {
    if (this.#taken.has(id)) return 'running'
    return this.#succeeded.has(id) ? 'succeeded' : undefined
  }

  /**
   * It succeeded here: if it comes again, it is not to run. Its acknowledgement may be lost on the way, or be forgotten by a
   * broker that is killed.
   */
  remember(id: JobId): void {
    this.#succeeded.add(id)
    if (this.#succeeded.size <= MOST_REMEMBERED) return
    const [oldest] = this.#succeeded
    this.#succeeded.delete(oldest as JobId)
  }

  countOf(queue: string): number {
    let count = 0
    for (const hand of this.#byLease.values()) if (hand.queue === queue) count += 1
    return count
  }
}
