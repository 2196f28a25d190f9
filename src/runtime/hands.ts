// A worker's hands on the queues that brokers carry: what arrived and waits for a place, what runs, and what becomes of it.
// A success is acknowledged and costs the ledger nothing. Everything else goes into the ledger first. When the connection
// breaks, the ledger is told of what runs here, so that nobody else runs it: from then on those are jobs of the ledger.
import { waitAtMost } from '../domain/clock.js'
import { carriedLease, type JobId, type Lease, type SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import type { Broker, BrokerConsumer, Delivery } from '../transport/broker.js'
import { read } from '../transport/envelope.js'
import type { LaneDemand } from '../transport/transport.js'
import { Arrivals } from './arrivals.js'
import { CarriedCounts } from './carried-counts.js'
import { CarriedEnds } from './carried-ends.js'
import type { AnyJobDefinition } from './definition.js'
import { type InHand, InHands } from './in-hands.js'
import { type Loop, loop } from './loop.js'
import { claimed, Parker } from './parker.js'
import type { Runtime } from './runtime.js'
import type { Done, Settler } from './settler.js'

export interface HandsOptions {
  readonly worker: string
  readonly definitions: readonly AnyJobDefinition[]
  readonly concurrency: number
  /** Queues that are paused from the start. */
  readonly paused?: readonly string[]
  readonly session: () => SessionId | undefined
  /** The session's lease holds: what is taken in as running is not rescued from us. */
  readonly safe: () => boolean
  /** How many places nobody has. */
  readonly free: () => number
  /** Some are there to be taken. */
  readonly onWake: () => void
  /** Takes out of these the ones that have not started, and returns them. */
  readonly release: (leases: ReadonlySet<Lease>) => readonly Lease[]
  /** Writes an end in the ledger, for as long as that takes: it comes back to `settle`. */
  readonly write: Settler['write']
  readonly onError: (error: unknown) => void
}

let leases = 0
const TUNE_MS = 250
/** So long ahead is worth holding ready, at the pace of the last moment. */
const AHEAD_MS = 30
const MOST_PREFETCH = 10_000
/** What a lane that is shut does not take is left to the ledger after so long ... */
const SHUT_MS = 1_000
/** ... and what a worker that is full does not get to, after so long. */
const FULL_MS = 5_000
const EVERYTHING = Number.MAX_SAFE_INTEGER

/** Undefined: no broker carries anything for this worker, and nothing is paid for it. */
export function handsOn(runtime: Runtime, options: HandsOptions): Hands | undefined {
  const { carriers } = runtime
  if (!carriers) return undefined
  const brokers = new Map<string, Broker>()
  for (const { queue } of options.definitions) {
    const carrier = carriers.of(queue)
    if (carrier) brokers.set(queue, carrier.broker)
  }
  return brokers.size === 0 ? undefined : new Hands(runtime, options, brokers)
}

export class Hands {
  readonly #runtime: Runtime
  readonly #options: HandsOptions
  readonly #brokers: ReadonlyMap<string, Broker>
  readonly #consumers = new Map<string, BrokerConsumer>()
  readonly #definitions: ReadonlyMap<string, AnyJobDefinition>
  readonly #arrivals: Arrivals<InHand>
  readonly #parker: Parker
  readonly #counts: CarriedCounts
  readonly #tuner: Loop
  readonly #forgetHands: () => void
  readonly #inHands = new InHands()
  readonly #ends: CarriedEnds
  readonly #paused = new Set<string>()
  #leaving = false
  #prefetch: number
  #finished = 0
  #tunedAt: number

  constructor(runtime: Runtime, options: HandsOptions, brokers: ReadonlyMap<string, Broker>) {
    const { definitions, worker, session, onError, concurrency } = options
    this.#runtime = runtime
    this.#options = options
    this.#brokers = brokers
    this.#definitions = new Map(definitions.map(definition => [laneKey(definition), definition]))
    this.#arrivals = new Arrivals(definitions)
    this.#parker = new Parker(runtime, { worker, session, standing: id => this.#inHands.standing(id), onError })
    this.#counts = new CarriedCounts(runtime, { brokers, session, inHands: queue => this.inHandsOf(queue), onError })
    this.#ends = new CarriedEnds(runtime, {
      ...options,
      inHands: this.#inHands,
      onCompleted: ({ queue }) => this.#completed(queue),
    })
    this.#prefetch = concurrency
    this.#tunedAt = runtime.clock.monotonic()
    this.#tuner = loop({ ...runtime, step: async () => this.#tune(), onError })
    this.#forgetHands = runtime.carriers?.addHands(queue => this.#arrivals.in(queue)) ?? (() => {})
    for (const broker of new Set(brokers.values())) this.#consume(broker)
    for (const queue of options.paused ?? []) this.setPaused(queue, true)
    this.#parker.start()
    this.#counts.start()
    this.#tuner.start()
  }

  /** Whether a broker carries every one of these lanes. */
  get hasAllLanes(): boolean {
    return this.#options.definitions.every(({ queue }) => this.#brokers.has(queue))
  }

  /** The job is fenced by the ledger and by our session, as if it had been claimed there. */
  isAdopted(lease: Lease): boolean {
    return this.#inHands.get(lease)?.adopted !== undefined
  }

  /** Those that run here, or whose ends are being written, whatever the ledger knows of that. */
  taken(): JobId[] {
    return this.#inHands.taken()
  }

  /** Up to `limit` jobs that have arrived, first in line first. */
  take(demand: readonly LaneDemand[], limit: number): ClaimedJob[] {
    if (this.#leaving) return []
    this.#receiveAll()
    const now = this.#runtime.clock.now()
    return this.#arrivals.take(demand, limit).map(hand => {
      this.#inHands.take(hand)
      const job = Object.assign(claimed(hand.job, now), { lease: hand.lease })
      if (job.service === undefined && hand.service !== undefined) job.service = hand.service
      return job
    })
  }

  /** A success: acknowledged, together with those that end in the same turn. */
  complete<Ended extends Settlement>(settlement: Ended, done: Done<Ended>): void {
    this.#ends.complete(settlement, done)
  }

  /** Writes ends in the ledger. Returns those that were refused: their jobs belong to someone else now. */
  settle(batch: readonly Settlement[]): Promise<Settlement[]> {
    return this.#ends.settle(batch)
  }

  /** Resolves when every success has been acknowledged, or handed to the ledger, or when the signal aborts. */
  acknowledged(signal: AbortSignal): Promise<void> {
    return this.#ends.acknowledged(signal)
  }

  /** Nothing of a paused queue is started; what has arrived waits in the ledger. */
  setPaused(queue: string, paused: boolean): void {
    const consumer = this.#consumers.get(queue)
    if (!consumer) return
    consumer.setPaused(queue, paused)
    if (!paused) return void this.#paused.delete(queue)
    this.#paused.add(queue)
    this.#receiveAll()
    this.#leaveToLedger(this.#arrivals.remove(hand => hand.queue === queue))
  }

  /** Takes nothing more, and leaves to the ledger what has not started. */
  async leave(limitMs: number): Promise<void> {
    this.#leaving = true
    for (const [queue, consumer] of this.#consumers) consumer.setPaused(queue, true)
    const arrived = Promise.all([...new Set(this.#consumers.values())].map(consumer => consumer.acknowledge([])))
    await waitAtMost(this.#runtime.clock, limitMs, arrived)
    this.#receiveAll()
    this.#leaveToLedger(this.#arrivals.remove(() => true))
  }

  /** What the ledger did not take within the limit goes back to the broker. */
  async close(limitMs: number): Promise<void> {
    this.#ends.close()
    await this.#tuner.stop()
    await this.#parker.stop(limitMs)
    await Promise.all([...new Set(this.#consumers.values())].map(consumer => consumer.close()))
    await this.#counts.stop().catch(this.#options.onError)
    this.#forgetHands()
  }

  #consume(broker: Broker): void {
    const queues = [...this.#brokers].filter(([, carrier]) => carrier === broker).map(([queue]) => queue)
    const consumer: BrokerConsumer = broker.consume({
      queues,
      prefetch: this.#prefetch,
      onWake: this.#options.onWake,
      onLost: deliveries => this.#lose(deliveries),
      onError: this.#options.onError,
    })
    for (const queue of queues) this.#consumers.set(queue, consumer)
  }

  #receiveAll(): void {
    for (const [queue, consumer] of this.#consumers) {
      if (consumer.arrived(queue) === 0) continue
      for (const delivery of consumer.take(queue, EVERYTHING)) this.#receive(consumer, delivery)
    }
  }

  #receive(consumer: BrokerConsumer, delivery: Delivery): void {
    const { clock } = this.#runtime
    const reading = read(delivery, clock)
    const { job } = reading
    const arrivedAt = clock.monotonic()
    const parked = { job, consumer, delivery, arrivedAt }
    if (reading.type === 'malformed') {
      this.#parker.add({ ...parked, cause: { type: 'malformed', problem: reading.problem } })
    } else if (delivery.redelivered) {
      this.#parker.add({ ...parked, cause: { type: 'again' } })
    } else if (this.#paused.has(job.queue)) {
      // It was on its way when the queue was paused.
      const service = this.#definitions.get(laneKey(job))?.service
      this.#parker.add({ ...parked, service, cause: { type: 'unstarted' } })
    } else if (this.#arrivals.knows(job)) {
      leases += 1
      const { queue, name, priority } = job
      const lease = carriedLease(leases)
      const service = this.#definitions.get(laneKey(job))?.service
      const hand: InHand = { job, queue, name, priority, lease, consumer, service, delivery, arrivedAt, taken: false }
      this.#inHands.add(hand)
      this.#arrivals.add(hand)
    } else {
      this.#parker.add({ ...parked, cause: { type: 'unknown' } })
    }
  }

  /** The right to these is gone, and anyone may get them. The ledger is told before they do. */
  #lose(deliveries: readonly Delivery[]): void {
    this.#parker.drop(new Set(deliveries))
    const lost = this.#inHands.of(deliveries)
    for (const hand of lost) this.#inHands.lose(hand)
    const gone = new Set(lost)
    const unstarted = this.#arrivals.remove(hand => gone.has(hand))
    const released = new Set(this.#options.release(new Set(lost.map(({ lease }) => lease))))
    unstarted.push(...lost.filter(({ lease }) => released.has(lease)))
    this.#leaveToLedger(unstarted)
    const staying = new Set(unstarted)
    const running = lost.filter(hand => hand.taken && !hand.settling && !staying.has(hand))
    if (running.length > 0) this.#ends.adopt(running)
  }

  #leaveToLedger(hands: readonly InHand[]): void {
    for (const hand of hands) {
      const { job, service, consumer, delivery, arrivedAt } = hand
      this.#inHands.forget(hand)
      this.#parker.add({ job, service, consumer, delivery, arrivedAt, cause: { type: 'unstarted' } })
    }
  }

  #completed(queue: string): void {
    this.#finished += 1
    this.#counts.completed(queue)
  }

  /** How many are on their way into the ledger. */
  get parking(): number {
    return this.#parker.size
  }

  /** What this worker has of a queue: waiting for a place, and running or waiting for their end to be written. */
  inHandsOf(queue: string): { waiting: number; active: number } {
    const waiting = this.#arrivals.in(queue)
    return { waiting, active: this.#inHands.countOf(queue) - waiting }
  }

  /** How many to have in hand: enough to keep the places busy, and beyond them those that wait for the ledger. */
  #tune(): number {
    const { clock } = this.#runtime
    const { concurrency, free, safe } = this.#options
    const now = clock.monotonic()
    const perMs = this.#finished / Math.max(1, now - this.#tunedAt)
    this.#finished = 0
    this.#tunedAt = now
    const stuck = Math.max(0, this.#inHands.size - this.#arrivals.count - concurrency + Math.max(0, free()))
    const wanted = Math.min(MOST_PREFETCH, concurrency + Math.floor(perMs * AHEAD_MS) + stuck + this.#parker.size)
    if (wanted > this.#prefetch || wanted < this.#prefetch / 4) {
      this.#prefetch = wanted > this.#prefetch ? Math.min(MOST_PREFETCH, Math.ceil(wanted * 1.5)) : wanted
      for (const consumer of new Set(this.#consumers.values())) consumer.setPrefetch?.(this.#prefetch)
    }
    if (safe() && !this.#leaving) {
      const since = now - (free() > 0 ? SHUT_MS : FULL_MS)
      this.#leaveToLedger(this.#arrivals.remove(({ arrivedAt }) => arrivedAt < since))
    }
    return TUNE_MS
  }
}

const laneKey = ({ queue, name }: { queue: string; name: string }): string => `${queue}\n${name}`
