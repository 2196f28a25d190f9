// What a worker has taken on, from the ledger and from brokers: jobs that wait here for a place or for their rate limit, jobs
// that run, and ends that are being written. Nothing starts here without the right to it; what does not start goes back.
import { sleep } from '../domain/clock.js'
import { isCarriedLease, type SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Hold } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { Settlement } from '../domain/settlement.js'
import { markStarted } from '../ledger/claim.js'
import { saveProgress } from '../ledger/job.js'
import type { AnyJobDefinition } from './definition.js'
import { Executor, unstorable } from './executor.js'
import { type Hands, handsOn } from './hands.js'
import type { Heartbeat } from './heartbeat.js'
import { PayloadReader } from './payload-reader.js'
import type { Prefetch } from './prefetch.js'
import { type RateGate, rateGate } from './rate-gate.js'
import type { Runtime } from './runtime.js'
import { createSettler, type Done, type Settler } from './settler.js'
import type { Held, Running, Slots } from './slots.js'

export interface WorkloadOptions {
  readonly worker: string
  readonly definitions: readonly AnyJobDefinition[]
  readonly concurrency: number
  readonly slots: Slots
  readonly prefetch: Prefetch
  readonly heartbeat: Pick<Heartbeat, 'safe'>
  /** There may be room for more jobs again. */
  readonly onRoom: () => void
  /** A job has ended, and another may have its place. */
  readonly onFinished: () => void
  readonly onError: (where: string, error: unknown) => void
}

/** While brokers keep all places busy, so long and so many of them are kept for jobs of the ledger that may be due. */
const LEDGER_TURN_MS = 1_000
const LEDGER_SHARE = 4
/** With so many ends unwritten the ledger is behind or away: fetch no more. */
const MOST_UNSETTLED = 5_000

export class Workload {
  readonly #runtime: Runtime
  readonly #options: WorkloadOptions
  readonly #slots: Slots
  readonly #prefetch: Prefetch
  readonly #heartbeat: Pick<Heartbeat, 'safe'>
  readonly #settler: Settler
  readonly #executor: Executor
  readonly #gate: RateGate | undefined
  /** Once there is a job whose payload lies apart. */
  #reader: PayloadReader | undefined
  #session: SessionId | undefined
  #hands: Hands | undefined
  /** With brokers: since when the ledger waits for places. */
  #ledgerTurnSince: number | undefined
  #startsSoon = false
  #waitsForSettler = false
  #isShut = false
  #onQuiet: (() => void) | undefined

  constructor(runtime: Runtime, options: WorkloadOptions) {
    const { clock, random, db, transport, announce, logFor, tracing, onDeferred } = runtime
    const { worker, slots, prefetch, heartbeat, concurrency, onRoom, onError } = options
    this.#runtime = runtime
    this.#options = options
    this.#slots = slots
    this.#prefetch = prefetch
    this.#heartbeat = heartbeat
    this.#settler = createSettler({
      clock,
      random,
      settle: async (batch, lane) => {
        const [first] = batch
        if (first && isCarriedLease(first.lease)) return this.#hands?.settle(batch) ?? [...batch]
        return transport.settle(batch, { session: this.#session as SessionId, lane })
      },
      inOrder: transport.capabilities.settlesInOrder,
      instead: unstorable,
      onError: error => onError('settling', error),
      onWritten: () => {
        if (this.#waitsForSettler && this.#settler.pending <= MOST_UNSETTLED) onRoom()
      },
    })
    this.#executor = new Executor({
      worker,
      settler: { write: (settlement, done) => this.#write(settlement, done) },
      clock,
      random,
      announce,
      onDeferred,
      logFor: job => logFor(job, worker),
      tracing,
      saveProgress: async (job, progress) => job.carried ?? saveProgress(db, job.id, job.lease, progress),
      markStarted: job => markStarted(db, job),
      onPerformed: running => this.#finished(running),
    })
    this.#gate = rateGate(runtime, {
      slots,
      concurrency,
      ahead: () => prefetch.target(clock.monotonic()),
      start: held => (this.#mayStart(held) ? this.#run(held) : this.#return(held)),
      hold: (held, hold) => this.#return(held, hold),
      giveBack: held => this.#return(held),
      onRoom,
      onError: error => onError('rate limits', error),
    })
  }

  /** From now on ends are written under this session. */
  open(session: SessionId): void {
    this.#session = session
  }

  /** On the queues that brokers carry, once they are open. */
  get hands(): Hands | undefined {
    return this.#hands
  }

  openHands(paused: readonly string[]): void {
    const { worker, definitions, concurrency, onError } = this.#options
    this.#hands ??= handsOn(this.#runtime, {
      worker,
      definitions,
      concurrency,
      paused,
      session: () => this.#session,
      safe: () => this.#heartbeat.safe,
      free: () => this.#slots.freeCount,
      onWake: () => this.#startWaitingSoon(),
      release: leases => this.#slots.release(({ job }) => leases.has(job.lease)).map(({ job }) => job.lease),
      write: (settlement, done) => this.#settler.write(settlement, done),
      onError: error => onError('broker', error),
    })
  }

  start(): void {
    this.#gate?.start()
  }

  /** `isCurrent`: the session they were claimed under is still the one we have. */
  accept(jobs: readonly ClaimedJob[], fetchedAt: number, isCurrent: boolean): void {
    const rated: Held[] = []
    const unread: Held[] = []
    for (const job of jobs) {
      const held = this.#slots.hold(job, fetchedAt)
      if (job.apart) unread.push(held)
      else if (held.definition.rateLimit) rated.push(held)
    }
    const isOurs = isCurrent && this.#heartbeat.safe
    if (this.#isShut) this.giveBack()
    else {
      if (!isOurs) this.giveBack(({ job }) => !this.isOnBroker(job))
      else if (unread.length > 0) this.#read(unread)
      this.#admit(rated)
    }
    this.#startWaiting()
  }

  #read(unread: readonly Held[]): void {
    const { clock, random, transport } = this.#runtime
    this.#reader ??= new PayloadReader({
      clock,
      random,
      read: async (jobs, onRead) => transport.readPayloads?.(jobs, onRead),
      isInLine: held => !this.#slots.isReserved(held),
      onRead: held => {
        this.#admit(held.filter(({ definition }) => definition.rateLimit))
        this.#startWaiting()
      },
      // Others may have more luck, and we as well, in a moment.
      onFailed: (held, error) => {
        this.#options.onError('reading payloads', error)
        const unread = new Set(held)
        this.giveBack(held => unread.has(held))
      },
    })
    this.#reader.add(unread)
  }

  /** Those that wait for their rate limit. */
  #admit(rated: readonly Held[]): void {
    if (rated.length > 0) this.#gate?.admit(rated.filter(held => this.#slots.isReserved(held)))
  }

  /** One that there is no place for goes back: others may have one. */
  refuse(job: ClaimedJob, fetchedAt: number): void {
    this.#slots.hold(job, fetchedAt)
    this.giveBack(held => held.job === job)
  }

  /** What is here already, claimed or brought by a broker. */
  whatIsHere(): (job: ClaimedJob) => boolean {
    const leases = new Set([...this.#slots.leases(), ...this.#settler.leases()])
    const ids = new Set(this.#hands?.taken())
    return ({ lease, id }) => leases.has(lease) || ids.has(id)
  }

  /** True: nothing more should be fetched until `onRoom`. */
  isBehind(): boolean {
    this.#waitsForSettler = this.#settler.pending > MOST_UNSETTLED
    return this.#waitsForSettler
  }

  /** Nothing is started on a lease that may be gone: after a long pause of this process, others may have the jobs. */
  #startWaiting(): void {
    this.#startsSoon = false
    this.#takeArrived()
    const isSafe = this.#heartbeat.safe
    const may = (held: Held) => this.#mayStart(held, isSafe)
    for (;;) {
      const next = this.#slots.next(may) ?? (this.#hands && this.#slots.nextCarried(may))
      if (!next) break
      if (!this.#gate || this.#gate.lets(next)) this.#run(next)
    }
    this.#gate?.startReady()
  }

  #mayStart({ job }: Held, isSafe = this.#heartbeat.safe): boolean {
    return isSafe || this.isOnBroker(job)
  }

  /** The right to run it is a broker's to give: it does not end with our session. */
  isOnBroker(job: ClaimedJob): boolean {
    return job.carried === true && !this.#hands?.isAdopted(job.lease)
  }

  /** Takes what brokers have brought into free places, whatever the ledger is doing. */
  #takeArrived(): void {
    const hands = this.#hands
    if (!hands || this.#isShut) return
    const { demand, limit } = this.#slots.demand(0)
    const jobs = hands.take(demand, limit - this.#keptForLedger())
    if (jobs.length === 0) return
    const fetchedAt = this.#runtime.clock.monotonic()
    this.#admit(jobs.map(job => this.#slots.hold(job, fetchedAt)))
  }

  /** Jobs of the ledger may be due, and there is no place for them. */
  ledgerWaits(now: number): void {
    if (this.#hands) this.#ledgerTurnSince ??= now
  }

  ledgerHadItsTurn(): void {
    this.#ledgerTurnSince = undefined
  }

  /** Places that arrivals leave free, for a moment: without them a busy broker would keep retries waiting for ever. */
  #keptForLedger(): number {
    const since = this.#ledgerTurnSince
    if (since === undefined || !this.#heartbeat.safe) return 0
    if (this.#runtime.clock.monotonic() - since > LEDGER_TURN_MS) return 0
    return Math.ceil(this.#options.concurrency / LEDGER_SHARE)
  }

  /**
   * Not at once: handlers that end in the same turn would otherwise call each other's successors for as long as any
   * wait here, and neither the next claim nor what is settled would get its turn.
   */
  #startWaitingSoon(): void {
    if (this.#startsSoon || (this.#slots.waitingCount === 0 && !this.#gate?.isDue && !this.#hands)) return
    this.#startsSoon = true
    this.#runtime.clock.soon(() => this.#startWaiting())
  }

  #run(held: Held): void {
    this.#reader?.left(held)
    this.#executor.execute(this.#slots.start(held, this.#policyOf(held)))
  }

  #finished(running: Running): void {
    this.#slots.finish(running)
    this.#prefetch.jobFinished()
    if (this.#slots.runningCount === 0) this.#onQuiet?.()
    if (this.#isShut) return
    this.#startWaitingSoon()
    this.#options.onFinished()
  }

  /** A success that a broker carried is acknowledged; every other end goes to the ledger. */
  #write<Ended extends Settlement>(settlement: Ended, done: Done<Ended>): void {
    const { lease, decision } = settlement
    if (this.#hands && decision.type === 'complete' && isCarriedLease(lease)) this.#hands.complete(settlement, done)
    else this.#settler.write(settlement, done)
  }

  /** Gives back what has not started, all or some. */
  giveBack(which?: (held: Held) => boolean): void {
    const outcome = { type: 'interrupted', started: false } as const
    for (const held of this.#slots.release(which)) {
      this.#reader?.left(held)
      this.#executor.settle(held, this.#policyOf(held), outcome)
    }
  }

  /** Gives back what was claimed before then and has not started. */
  giveBackOlder(fetchedBefore: number): void {
    if (this.#slots.waitedSince() < fetchedBefore) {
      // What is on its way has waited for no place.
      const waits = (held: Held) => !this.#slots.isReserved(held) && !this.#reader?.isComing(held)
      this.giveBack(held => waits(held) && !held.job.carried)
    }
    this.#gate?.giveBackOlder(fetchedBefore)
  }

  /** One that waited for its rate limit does not start here: held for its turn, or given back. */
  #return(held: Held, hold?: Hold): void {
    this.#slots.unreserve(held)
    this.#reader?.left(held)
    const outcome = { type: 'interrupted', started: false, ...(hold && { hold }) } as const
    this.#executor.settle(held, this.#policyOf(held), outcome)
  }

  #policyOf({ job, lane }: Held): Policy {
    return this.#runtime.policies.for(lane.definition.policy, job)
  }

  /** From now on nothing starts in the place of what ends, and what is accepted goes back. */
  shut(): void {
    this.#isShut = true
  }

  async stop(): Promise<void> {
    this.#reader?.close()
    await this.#gate?.stop()
  }

  /** Resolves when nothing runs any more, or after `limitMs`. */
  async quiet(limitMs: number): Promise<void> {
    if (this.#slots.runningCount === 0) return
    const quiet = new AbortController()
    this.#onQuiet = () => quiet.abort()
    await sleep(this.#runtime.clock, limitMs, quiet.signal)
    this.#onQuiet = undefined
  }

  /** Resolves when every end is acknowledged or written, or when the signal aborts. */
  async drain(signal: AbortSignal): Promise<void> {
    await this.#hands?.acknowledged(signal)
    await this.#settler.drain(signal)
  }
}
