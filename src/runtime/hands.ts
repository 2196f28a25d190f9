// A worker's hands on the queues that brokers carry: what arrived and waits for a place, what runs, and what becomes of it.
// A success is acknowledged and costs the ledger nothing. Everything else goes into the ledger first. When the connection
// breaks, the ledger is told of what runs here, so that nobody else runs it: from then on those are jobs of the ledger.
import { sleep } from '../domain/clock.js'
import { carriedLease, type JobId, type Lease, type SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import { type Adoption, adoptRunning, park } from '../ledger/carried.js'
import { completeLate } from '../ledger/carried-late.js'
import type { Database } from '../ledger/database.js'
import type { Broker, BrokerConsumer, Delivery } from '../transport/broker.js'
import { type CarriedJob, read, storable } from '../transport/envelope.js'
import type { LaneDemand } from '../transport/transport.js'
import { type Arrival, Arrivals } from './arrivals.js'
import { CarriedCounts } from './carried-counts.js'
import type { AnyJobDefinition } from './definition.js'
import { type Loop, loop } from './loop.js'
import { claimed, Parker } from './parker.js'
import type { Runtime } from './runtime.js'
import type { Settler } from './settler.js'

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

interface InHand extends Arrival {
  readonly job: CarriedJob
  readonly lease: Lease
  readonly consumer: BrokerConsumer
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

interface ToAcknowledge {
  readonly hand: InHand
  readonly settlement: Settlement
  readonly done: (settled: boolean) => void
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
const MOST_REMEMBERED = 10_000
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
  readonly #inHands = new Map<Lease, InHand>()
  readonly #byDelivery = new Map<Delivery, InHand>()
  /**
   * The last that succeeded here: if one comes again, it is not to run. Its acknowledgement was lost on the way, or by a
   * broker that was killed.
   */
  readonly #succeeded = new Set<JobId>()
  /** Ends that were written while another of the same batch was not: a batch is tried again whole. */
  readonly #written = new WeakMap<Settlement, boolean>()
  readonly #closed = new AbortController()
  #toAcknowledge: ToAcknowledge[] = []
  #acknowledging = new Set<Promise<unknown>>()
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
    this.#parker = new Parker(runtime, { worker, session, standing: id => this.#standing(id), onError })
    this.#counts = new CarriedCounts(runtime, { brokers, session, inHands: queue => this.inHandsOf(queue), onError })
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

  get hasArrivals(): boolean {
    return this.#arrivals.count > 0
  }

  /** The job is fenced by the ledger and by our session, as if it had been claimed there. */
  isAdopted(lease: Lease): boolean {
    return this.#inHands.get(lease)?.adopted !== undefined
  }

  /** Those that run here, or whose ends are being written, whatever the ledger knows of that. */
  taken(): JobId[] {
    return [...this.#inHands.values()].filter(({ taken }) => taken).map(({ job }) => job.id)
  }

  /** Up to `limit` jobs that have arrived, first in line first. */
  take(demand: readonly LaneDemand[], limit: number): ClaimedJob[] {
    if (this.#leaving) return []
    this.#receiveAll()
    const now = this.#runtime.clock.now()
    return this.#arrivals.take(demand, limit).map(hand => {
      hand.taken = true
      const service = hand.job.service ?? this.#definitions.get(laneKey(hand))?.service
      return { ...claimed(hand.job, now), lease: hand.lease, ...(service !== undefined && { service }) }
    })
  }

  /** A success: acknowledged, together with those that end in the same turn. */
  complete(settlement: Settlement, done: (settled: boolean) => void): void {
    const hand = this.#find(settlement)
    if (!hand || hand.ended) return void done(false)
    hand.ended = true
    if (!hand.delivery || hand.adopted || hand.adopting) this.#options.write(settlement, done)
    else {
      if (this.#toAcknowledge.length === 0) this.#runtime.clock.soon(() => this.#flush())
      this.#toAcknowledge.push({ hand, settlement, done })
    }
  }

  /** Writes ends in the ledger. Returns those that were refused: their jobs belong to someone else now. */
  async settle(batch: readonly Settlement[]): Promise<Settlement[]> {
    await Promise.all(batch.map(({ lease }) => this.#inHands.get(lease)?.adopting))
    const seen = new Set<Lease>()
    const adopted: [Settlement, InHand][] = []
    const late: [Settlement, InHand][] = []
    const toPark: [Settlement, InHand][] = []
    for (const settlement of batch) {
      const hand = this.#find(settlement)
      if (hand) hand.settling = true
      if (this.#written.has(settlement)) continue
      if (!hand || seen.has(settlement.lease)) this.#written.set(settlement, false)
      else if (hand.adopted) adopted.push([settlement, hand])
      else if (settlement.decision.type === 'complete') late.push([settlement, hand])
      else if (hand.delivery) toPark.push([settlement, hand])
      else this.#written.set(settlement, false)
      seen.add(settlement.lease)
    }
    if (adopted.length > 0) await this.#settleAdopted(adopted)
    if (late.length > 0) await this.#completeLate(late)
    if (toPark.length > 0) await this.#park(toPark)
    for (const settlement of batch) this.#forget(this.#find(settlement))
    return batch.filter(settlement => this.#written.get(settlement) === false)
  }

  /** Nothing of a paused queue is started; what has arrived waits in the ledger. */
  setPaused(queue: string, paused: boolean): void {
    const consumer = this.#consumers.get(queue)
    if (!consumer) return
    consumer.setPaused(queue, paused)
    if (!paused) return
    this.#receiveAll()
    this.#leaveToLedger(this.#arrivals.remove(hand => hand.queue === queue))
  }

  /** Takes nothing more, and leaves to the ledger what has not started. */
  async leave(limitMs: number): Promise<void> {
    this.#leaving = true
    for (const [queue, consumer] of this.#consumers) consumer.setPaused(queue, true)
    const arrived = Promise.all([...new Set(this.#consumers.values())].map(consumer => consumer.acknowledge([])))
    await Promise.race([arrived, sleep(this.#runtime.clock, limitMs)])
    this.#receiveAll()
    this.#leaveToLedger(this.#arrivals.remove(() => true))
  }

  /** Resolves when every success has been acknowledged, or handed to the ledger, or when the signal aborts. */
  async acknowledged(signal: AbortSignal): Promise<void> {
    const { clock } = this.#runtime
    while (!signal.aborted && (this.#toAcknowledge.length > 0 || this.#acknowledging.size > 0)) {
      if (this.#toAcknowledge.length > 0) this.#flush()
      const given = new AbortController()
      await Promise.race([
        Promise.all(this.#acknowledging),
        sleep(clock, EVERYTHING, AbortSignal.any([signal, given.signal])),
      ])
      given.abort()
    }
  }

  /** What the ledger did not take within the limit goes back to the broker. */
  async close(limitMs: number): Promise<void> {
    this.#closed.abort()
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
    } else if (this.#arrivals.knows(job)) {
      leases += 1
      const { queue, name, priority } = job
      const lease = carriedLease(leases)
      const hand: InHand = { job, queue, name, priority, lease, consumer, delivery, arrivedAt, taken: false }
      this.#inHands.set(hand.lease, hand)
      this.#byDelivery.set(delivery, hand)
      this.#arrivals.add(hand)
    } else {
      this.#parker.add({ ...parked, cause: { type: 'unknown' } })
    }
  }

  #flush(): void {
    const batch = this.#toAcknowledge
    this.#toAcknowledge = []
    const byConsumer = new Map<BrokerConsumer, ToAcknowledge[]>()
    for (const item of batch) {
      const { consumer } = item.hand
      const items = byConsumer.get(consumer)
      if (items) items.push(item)
      else byConsumer.set(consumer, [item])
    }
    for (const [consumer, items] of byConsumer) this.#track(this.#acknowledge(consumer, items))
  }

  async #acknowledge(consumer: BrokerConsumer, items: readonly ToAcknowledge[]): Promise<void> {
    const sent = items.filter(({ hand }) => hand.delivery !== undefined)
    for (const { hand } of items) this.#remember(hand.job.id)
    const lost = new Set(await consumer.acknowledge(sent.map(({ hand }) => hand.delivery as Delivery)))
    for (const { hand, settlement, done } of items) {
      if (hand.delivery !== undefined && !lost.has(hand.delivery)) {
        this.#counted(hand)
        this.#forget(hand)
        done(true)
      } else {
        // Perhaps it counted, perhaps not: the ledger is told, so that nobody runs it again.
        this.#drop(hand)
        this.#options.write(settlement, done)
      }
    }
  }

  #track(work: Promise<unknown>): void {
    const tracked = work.catch(this.#options.onError).finally(() => this.#acknowledging.delete(tracked))
    this.#acknowledging.add(tracked)
  }

  async #settleAdopted(ends: readonly [Settlement, InHand][]): Promise<void> {
    const { transport } = this.#runtime
    const theirs = ends.map(([settlement, hand]) => {
      const { receipt: _, ...end } = settlement
      return { ...end, lease: hand.adopted as Lease }
    })
    const by = { session: this.#options.session() as SessionId, lane: 0 }
    const refused = new Set(await transport.settle(theirs, by))
    for (const [index, [settlement]] of ends.entries()) {
      this.#written.set(settlement, !refused.has(theirs[index] as Settlement))
    }
  }

  async #completeLate(ends: readonly [Settlement, InHand][]): Promise<void> {
    for (const [, hand] of ends) this.#remember(hand.job.id)
    const batch = ends.map(([{ decision }, hand]) => ({
      job: this.#adoption(hand),
      result: decision.type === 'complete' ? decision.result : null,
    }))
    const written = await completeLate(this.#runtime.db, batch)
    for (const [settlement, hand] of ends) {
      const ours = written.has(hand.job.id)
      this.#written.set(settlement, ours)
      if (ours) this.#counted(hand)
    }
  }

  async #park(ends: readonly [Settlement, InHand][]): Promise<void> {
    const { db, transport } = this.#runtime
    const batch = ends.map(([{ outcome, decision }, hand]) => ({ job: this.#adoption(hand), outcome, decision }))
    const refused = new Set(await park(db, this.#options.session() as SessionId, batch))
    for (const [index, [settlement, hand]] of ends.entries()) {
      this.#written.set(settlement, !refused.has(batch[index] as (typeof batch)[number]))
      // One that is refused is in the ledger as well: there is nothing left to do for its message.
      if (hand.delivery) this.#track(hand.consumer.acknowledge([hand.delivery]))
    }
    for (const queue of new Set(ends.map(([, hand]) => hand.queue))) transport.wake(queue)
  }

  /** The right to these is gone, and anyone may get them. The ledger is told before they do. */
  #lose(deliveries: readonly Delivery[]): void {
    this.#parker.drop(new Set(deliveries))
    const lost = deliveries.flatMap(delivery => this.#byDelivery.get(delivery) ?? [])
    for (const hand of lost) this.#drop(hand)
    const gone = new Set(lost)
    const unstarted = this.#arrivals.remove(hand => gone.has(hand))
    const released = new Set(this.#options.release(new Set(lost.map(({ lease }) => lease))))
    unstarted.push(...lost.filter(({ lease }) => released.has(lease)))
    this.#leaveToLedger(unstarted)
    const staying = new Set(unstarted)
    const running = lost.filter(hand => hand.taken && !hand.settling && !staying.has(hand))
    if (running.length > 0) this.#adopt(running)
  }

  #drop(hand: InHand): void {
    if (hand.delivery) this.#byDelivery.delete(hand.delivery)
    hand.delivery = undefined
  }

  #adopt(hands: readonly InHand[]): void {
    const adopting = this.#adoptAll(hands)
    for (const hand of hands) hand.adopting = adopting
  }

  async #adoptAll(hands: readonly InHand[]): Promise<void> {
    const { db, clock, random } = this.#runtime
    const { session, safe, onError } = this.#options
    for (let pauseMs = 50; !this.#closed.signal.aborted; pauseMs = Math.min(pauseMs * 2, 1_000)) {
      const waiting = hands.filter(({ lease }) => this.#inHands.has(lease))
      if (waiting.length === 0) break
      try {
        // On a session that may have ended they would be rescued from us: it is revived, or there is a new one soon.
        if (safe() && (await this.#adoptOnce(db, session() as SessionId, waiting))) break
      } catch (error) {
        onError(error)
      }
      await sleep(clock, pauseMs * (0.5 + random() / 2), this.#closed.signal)
    }
    for (const hand of hands) delete hand.adopting
  }

  async #adoptOnce(db: Database, session: SessionId, hands: readonly InHand[]): Promise<true> {
    const adopted = await adoptRunning(
      db,
      session,
      hands.map(hand => this.#adoption(hand)),
    )
    for (const hand of hands) {
      const lease = adopted.get(hand.job.id)
      if (lease !== undefined) hand.adopted = lease
    }
    return true
  }

  #leaveToLedger(hands: readonly InHand[]): void {
    for (const hand of hands) {
      const { job, consumer, delivery, arrivedAt } = hand
      const service = this.#definitions.get(laneKey(hand))?.service
      this.#forget(hand)
      this.#parker.add({ job, service, consumer, delivery, arrivedAt, cause: { type: 'unstarted' } })
    }
  }

  #adoption(hand: InHand): Adoption {
    const { job, arrivedAt } = hand
    return {
      ...job,
      payloadText: storable(job.payloadText).payloadText,
      service: job.service ?? this.#definitions.get(laneKey(hand))?.service,
      heldForMs: Math.max(0, this.#runtime.clock.monotonic() - arrivedAt),
    }
  }

  #find({ id, lease }: Settlement): InHand | undefined {
    const hand = this.#inHands.get(lease)
    return hand?.job.id === id ? hand : undefined
  }

  #standing(id: JobId): 'running' | 'succeeded' | undefined {
    for (const { job, taken } of this.#inHands.values()) if (taken && job.id === id) return 'running'
    return this.#succeeded.has(id) ? 'succeeded' : undefined
  }

  #remember(id: JobId): void {
    this.#succeeded.add(id)
    if (this.#succeeded.size <= MOST_REMEMBERED) return
    const [oldest] = this.#succeeded
    this.#succeeded.delete(oldest as JobId)
  }

  #counted({ queue }: InHand): void {
    this.#finished += 1
    this.#counts.completed(queue)
  }

  #forget(hand: InHand | undefined): void {
    if (!hand) return
    this.#inHands.delete(hand.lease)
    if (hand.delivery) this.#byDelivery.delete(hand.delivery)
  }

  /** How many are on their way into the ledger. */
  get parking(): number {
    return this.#parker.size
  }

  /** What this worker has of a queue: waiting for a place, and running or waiting for their end to be written. */
  inHandsOf(queue: string): { waiting: number; active: number } {
    let all = 0
    for (const hand of this.#inHands.values()) if (hand.queue === queue) all += 1
    const waiting = this.#arrivals.in(queue)
    return { waiting, active: all - waiting }
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
