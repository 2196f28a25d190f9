// A worker: fetches jobs into free slots, runs them, settles them, and leaves cleanly. It holds one session, whose
// lease is the right to everything it runs; without that right it starts nothing and stops what runs.
import { sleep, type Timer, waitAtMost } from '../domain/clock.js'
import { RedriveError } from '../domain/errors.js'
import { isCarriedLease, type JobId, type SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Hold } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { Settlement } from '../domain/settlement.js'
import { markStarted } from '../ledger/claim.js'
import { saveProgress } from '../ledger/job.js'
import { announceJobTypes } from '../ledger/job-type.js'
import { ensureQueues } from '../ledger/queue.js'
import { policyAsJson } from '../policy/effective.js'
import type { LaneDemand } from '../transport/transport.js'
import { Claims } from './claims.js'
import type { AnyJobDefinition } from './definition.js'
import { Executor, unstorable } from './executor.js'
import { type Hands, handsOn } from './hands.js'
import { Heartbeat } from './heartbeat.js'
import { Looks } from './looks.js'
import { type Loop, loop } from './loop.js'
import { fetchPaced } from './paced-fetch.js'
import { Prefetch } from './prefetch.js'
import { type QueueSync, queueSync } from './queue-sync.js'
import { type RateGate, rateGate } from './rate-gate.js'
import type { Runtime } from './runtime.js'
import { createSettler, type Done, type Settler } from './settler.js'
import { type Held, type Running, Slots } from './slots.js'
import { Standby } from './standby.js'

export interface WorkerOptions {
  /** How it is called in sessions, logs and metrics. */
  readonly name: string
  readonly host: string
  readonly pid: number
  readonly version: string | null
  readonly concurrency: number
  readonly leaseMs: number
  /** How often to look for work when nothing wakes the worker. */
  readonly pollMs: number
  /** Called once: there is little to do, or it has worked for a second. What can wait until then should. */
  readonly onSettledIn?: () => void
}

/** A job that was claimed ahead and has waited here so long is better off with a worker that is free. */
const LONGEST_WAIT_HERE_MS = 1_000
const SETTLES_IN_MS = 1_000
const DRAIN_LIMIT_MS = 10_000
/** How long a broker, or the ledger on a broker's behalf, may take when a worker leaves. */
const LEAVE_LIMIT_MS = 5_000
/** While brokers keep all places busy, so long and so many of them are kept for jobs of the ledger that may be due. */
const LEDGER_TURN_MS = 1_000
const LEDGER_SHARE = 4
/** With so many ends unwritten the ledger is behind or away: fetch no more. */
const MOST_UNSETTLED = 5_000

export class Worker {
  readonly name: string
  readonly #runtime: Runtime
  readonly #options: WorkerOptions
  readonly #slots: Slots
  readonly #prefetch = new Prefetch()
  readonly #gate: RateGate | undefined
  readonly #settler: Settler
  readonly #executor: Executor
  readonly #heartbeat: Heartbeat
  readonly #sync: QueueSync
  readonly #pump: Loop
  readonly #claims: Claims
  readonly #looks: Looks
  readonly #standby: Standby
  #session: SessionId | undefined
  /** On the queues that brokers carry. */
  #hands: Hands | undefined
  /** With brokers: since when the ledger waits for places. */
  #ledgerTurnSince: number | undefined
  #startsSoon = false
  #waitsForSettler = false
  #stopping: Promise<void> | undefined
  #onQuiet: (() => void) | undefined

  constructor(runtime: Runtime, definitions: readonly AnyJobDefinition[], options: WorkerOptions) {
    const { clock, random, db, transport, announce, policies, logFor, tracing, onDeferred } = runtime
    const { name } = options
    this.name = name
    this.#runtime = runtime
    this.#options = options
    this.#slots = new Slots(definitions, options.concurrency, service => runtime.services.of(service))
    const onError = (where: string) => (error: unknown) =>
      announce('error', () => ({ where: `${name}: ${where}`, error }))
    const queues = [...new Set(definitions.map(definition => definition.queue))]
    this.#queues = queues

    this.#settler = createSettler({
      clock,
      random,
      settle: async (batch, lane) => {
        const [first] = batch
        if (first && isCarriedLease(first.lease)) return this.#hands?.settle(batch) ?? [...batch]
        return transport.settle(batch, { session: this.#session as SessionId, lane })
      },
      instead: (settlement, error) => {
        const outcome = { type: 'failed', failure: unstorable(error), final: true } as const
        return { ...settlement, outcome, decision: { type: 'bury', reason: outcome.failure.message } }
      },
      onError: onError('settling'),
      onWritten: () => this.#goOnFetching(),
    })
    this.#executor = new Executor({
      worker: name,
      policies,
      settler: { write: (settlement, done) => this.#write(settlement, done) },
      clock,
      random,
      announce,
      onDeferred,
      logFor: job => logFor(job, name),
      tracing,
      saveProgress: async (job, progress) => job.carried ?? saveProgress(db, job.id, job.lease, progress),
      markStarted: job => markStarted(db, job),
      onPerformed: running => this.#finished(running),
    })
    this.#heartbeat = new Heartbeat({
      db,
      clock,
      random,
      session: { ...options, worker: name, queues },
      onOpen: session => this.#open(session),
      onLapse: reason => this.#lapse(reason),
      onCancel: jobs => this.#cancel(jobs),
      onError: onError('renewing the lease'),
    })
    this.#sync = queueSync(runtime, {
      lanes: definitions,
      onPaused: queue => this.#giveBack(({ job }) => job.queue === queue),
      onSettings: (queue, paused) => this.#follow(queue, paused),
      onError: onError('queues'),
    })
    this.#gate = rateGate(runtime, {
      slots: this.#slots,
      concurrency: options.concurrency,
      ahead: () => this.#prefetch.target(clock.monotonic()),
      start: held => (this.#mayStart(held) ? this.#run(held) : this.#return(held)),
      hold: (held, hold) => this.#return(held, hold),
      giveBack: held => this.#return(held),
      onRoom: () => this.#pump.nudge(),
      onError: onError('rate limits'),
    })
    this.#claims = new Claims({
      worker: name,
      lanes: definitions.map(({ queue, name }) => ({ queue, name })),
      transport,
      clock,
      announce,
      onWake: () => this.#wake(),
      onUp: () => this.#standby.listens(),
      onHanded: job => this.#standby.handed(!this.#take(job) || this.#slots.freeCount < 1),
      onFound: jobs => {
        for (const job of jobs) this.#take(job)
      },
      whatIsHere: () => this.#whatIsHere(),
    })
    this.#looks = new Looks(clock, options.pollMs)
    this.#standby = new Standby({
      clock,
      random,
      // Brokers bring jobs by themselves.
      lanes: () => (this.#hands ? [] : this.#slots.openLanes()),
      say: lanes => this.#claims.standBy(lanes),
      stand: ms => this.#claims.stand(ms),
      onError: onError('standing by'),
    })
    this.#pump = loop({ clock, random, step: () => this.#fetch(), onError: onError('fetching') })
    this.#stopFollowing = runtime.services.onChange(() => this.#followServices())
    this.#starting = this.#start(queues, definitions)
    this.#settlesIn = clock.timer(SETTLES_IN_MS, () => this.#hasSettledIn(), { background: true })
  }

  readonly #queues: readonly string[]
  readonly #paused = new Set<string>()
  readonly #starting: Promise<void>
  readonly #startup = new AbortController()
  readonly #stopFollowing: () => void
  #settlesIn: Timer | undefined

  /** Resolves when the worker has its session and fetches; with the database away it keeps trying. */
  get ready(): Promise<void> {
    return this.#starting
  }

  /** How many jobs it is running now. */
  get active(): number {
    return this.#slots.runningCount
  }

  /** Milliseconds since it last asked for work and got an answer; undefined before the first time. */
  get lastFetchAgoMs(): number | undefined {
    return this.#claims.answeredAgoMs
  }

  async #start(queues: readonly string[], definitions: readonly AnyJobDefinition[]): Promise<void> {
    const { db, clock, random, announce, policies } = this.#runtime
    const settings = policyAsJson(policies.settings)
    const types = definitions.map(({ name, queue, service = null, policy }) => {
      return { name, queue, service, policy: policyAsJson(policy), settings }
    })
    for (let pauseMs = 100; !this.#startup.signal.aborted; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      try {
        // One after the other on one connection: to open several at once takes longer.
        const session = await this.#heartbeat.start()
        await ensureQueues(db, queues)
        await announceJobTypes(db, types)
        await this.#runtime.services.follow(definitions.flatMap(({ service }) => service ?? []))
        // Policies and pauses are known before the first job comes, from whomever.
        await this.#sync.start()
        if (this.#runtime.carriers && !this.#startup.signal.aborted) this.#openHands(definitions)
        announce('worker.started', () => ({ worker: this.name, session }))
        this.#gate?.start()
        if (!this.#startup.signal.aborted) this.#pump.start()
        return
      } catch (error) {
        announce('error', () => ({ where: `${this.name}: starting`, error }))
        await sleep(clock, pauseMs * (0.5 + random() / 2), this.#startup.signal)
      }
    }
  }

  #hasSettledIn(): void {
    if (!this.#settlesIn) return
    this.#settlesIn.cancel()
    this.#settlesIn = undefined
    this.#options.onSettledIn?.()
  }

  /** One look for work. Returns how long to wait for the next if nothing calls for it earlier. */
  async #fetch(): Promise<number> {
    const { clock } = this.#runtime
    const { current } = this.#claims
    this.#looks.begin()
    if (!current || !this.#heartbeat.safe) return this.#options.pollMs
    await this.#claims.findMissed()
    if (this.#slots.waitedSince() < clock.monotonic() - LONGEST_WAIT_HERE_MS) {
      this.#giveBack(held => !this.#slots.isReserved(held) && !held.job.carried)
    }
    this.#gate?.giveBackOlder(clock.monotonic() - LONGEST_WAIT_HERE_MS)
    const pacedMs = await this.#fetchPaced(current)
    const askedAt = clock.monotonic()
    // A broker tells what there is: the ledger is asked for the rest only, when something woke us or it is time.
    if (this.#hands?.hasAllLanes && this.#looks.restMs > 0) return Math.min(pacedMs, this.#looks.restMs)
    const { demand, limit } = this.#demand()
    if (limit < 1) {
      if (this.#hands) this.#ledgerTurnSince ??= askedAt
      return Math.min(pacedMs, this.#options.pollMs)
    }
    const jobs = await this.#claims.fetch(demand, limit)
    const fetchedAt = clock.monotonic()
    this.#ledgerTurnSince = undefined
    this.#prefetch.fetched(askedAt, fetchedAt, jobs)
    this.#accept(current, jobs, fetchedAt)
    if (this.#slots.freeCount < 1) this.#standby.standDown()
    const againMs = this.#looks.saw({ demand, limit, jobs, lanes: this.#slots.lanes.length })
    if (againMs === 0) return 0
    if (this.#looks.isCalm) {
      this.#hasSettledIn()
      this.#standby.standUp()
    }
    return Math.min(pacedMs, againMs)
  }

  /** Before the others: a worker that is always full would otherwise never find out whether a service is back. */
  async #fetchPaced(claims: object): Promise<number> {
    const { services, clock } = this.#runtime
    const ahead = this.#prefetch.target(clock.monotonic())
    const fetch = async (demand: readonly LaneDemand[], limit: number) => {
      // Permits are for either: what a broker has brought needs no claim.
      const arrived = this.#hands?.take(demand, limit) ?? []
      return arrived.length > 0 ? arrived : this.#claims.fetch(demand, limit)
    }
    const accept = (jobs: readonly ClaimedJob[]) => this.#accept(claims, jobs, clock.monotonic())
    return fetchPaced(services, this.#slots, ahead, fetch, accept)
  }

  #accept(claims: object, jobs: readonly ClaimedJob[], fetchedAt: number): void {
    const rated: Held[] = []
    for (const job of jobs) {
      const held = this.#slots.hold(job, fetchedAt)
      if (held) rated.push(held)
    }
    if (this.#stopping !== undefined) this.#giveBack()
    else {
      const isOurs = this.#heartbeat.safe && claims === this.#claims.current
      if (!isOurs) this.#giveBack(({ job }) => !this.#onBroker(job))
      this.#gate?.admit(isOurs ? rated : rated.filter(held => this.#slots.isReserved(held)))
    }
    this.#startWaiting()
  }

  /** One that was not asked for now: handed over, or found. Where there is no place for it, it goes back: others may have one. */
  #take(job: ClaimedJob): boolean {
    const { current } = this.#claims
    if (!current) return false
    const { demand } = this.#demand()
    const isWanted = demand.some(({ queue, name }) => queue === job.queue && name === job.name)
    const hasPlace = isWanted && !this.#paused.has(job.queue)
    const fetchedAt = this.#runtime.clock.monotonic()
    if (hasPlace) this.#accept(current, [job], fetchedAt)
    else {
      this.#slots.hold(job, fetchedAt)
      this.#giveBack(held => held.job === job)
    }
    return hasPlace
  }

  /** What is here already, claimed or brought by a broker. */
  #whatIsHere(): (job: ClaimedJob) => boolean {
    const leases = new Set([...this.#slots.leases(), ...this.#settler.leases()])
    const ids = new Set(this.#hands?.taken())
    return ({ lease, id }) => leases.has(lease) || ids.has(id)
  }

  #demand(): { demand: LaneDemand[]; limit: number } {
    this.#waitsForSettler = this.#settler.pending > MOST_UNSETTLED
    return this.#waitsForSettler
      ? { demand: [], limit: 0 }
      : this.#slots.demand(this.#prefetch.target(this.#runtime.clock.monotonic()))
  }

  #goOnFetching(): void {
    if (this.#waitsForSettler && this.#settler.pending <= MOST_UNSETTLED) this.#pump.nudge()
  }

  /** Nothing is started on a lease that may be gone: after a long pause of this process, others may have the jobs. */
  #startWaiting(): void {
    this.#startsSoon = false
    this.#takeArrived()
    for (;;) {
      const next = this.#slots.next(held => this.#mayStart(held))
      if (!next) break
      if (!this.#gate || this.#gate.lets(next)) this.#run(next)
    }
    this.#gate?.startReady()
  }

  #mayStart({ job }: Held): boolean {
    return this.#heartbeat.safe || this.#onBroker(job)
  }

  /** The right to run it is a broker's to give: it does not end with our session. */
  #onBroker(job: ClaimedJob): boolean {
    return job.carried === true && !this.#hands?.isAdopted(job.lease)
  }

  /** Takes what brokers have brought into free places, whatever the ledger is doing. */
  #takeArrived(): void {
    const hands = this.#hands
    if (!hands || this.#stopping !== undefined) return
    const { demand, limit } = this.#slots.demand(0)
    const jobs = hands.take(demand, limit - this.#keptForLedger())
    if (jobs.length === 0) return
    const fetchedAt = this.#runtime.clock.monotonic()
    const rated = jobs.flatMap(job => this.#slots.hold(job, fetchedAt) ?? [])
    this.#gate?.admit(rated)
  }

  /** Places that arrivals leave free, for a moment: without them a busy broker would keep retries waiting for ever. */
  #keptForLedger(): number {
    const since = this.#ledgerTurnSince
    if (since === undefined || !this.#heartbeat.safe) return 0
    if (this.#runtime.clock.monotonic() - since > LEDGER_TURN_MS) return 0
    return Math.ceil(this.#options.concurrency / LEDGER_SHARE)
  }

  #openHands(definitions: readonly AnyJobDefinition[]): void {
    this.#hands ??= handsOn(this.#runtime, {
      worker: this.name,
      definitions,
      concurrency: this.#options.concurrency,
      paused: [...this.#paused],
      session: () => this.#session,
      safe: () => this.#heartbeat.safe,
      free: () => this.#slots.freeCount,
      onWake: () => this.#startWaitingSoon(),
      release: leases => this.#slots.release(({ job }) => leases.has(job.lease)).map(({ job }) => job.lease),
      write: (settlement, done) => this.#settler.write(settlement, done),
      onError: error => this.#runtime.announce('error', () => ({ where: `${this.name}: broker`, error })),
    })
    this.#followServices()
  }

  /** A success that a broker carried is acknowledged; every other end goes to the ledger. */
  #write<Ended extends Settlement>(settlement: Ended, done: Done<Ended>): void {
    const { lease, decision } = settlement
    if (this.#hands && decision.type === 'complete' && isCarriedLease(lease)) this.#hands.complete(settlement, done)
    else this.#settler.write(settlement, done)
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
    this.#executor.execute(this.#slots.start(held))
  }

  #finished(running: Running): void {
    this.#slots.finish(running)
    this.#prefetch.jobFinished()
    if (this.#slots.runningCount === 0) this.#onQuiet?.()
    if (this.#stopping !== undefined) return
    this.#startWaitingSoon()
    if (!this.#looks.isQuiet) this.#pump.nudge()
  }

  /** Gives back what has not started, all or some. */
  #giveBack(which?: (held: Held) => boolean): void {
    const outcome = { type: 'interrupted', started: false } as const
    for (const held of this.#slots.release(which)) this.#executor.settle(held, this.#policyOf(held), outcome)
  }

  /** What was claimed ahead of a service that is held now goes back; of one that is let through again, more is fetched. */
  #followServices(): void {
    if (this.#slots.lanes.some(({ service }) => service?.free === false)) this.#standby.standDown()
    this.#giveBack(({ lane }) => lane.service !== undefined && lane.service.allowance < 1)
    for (const queue of this.#queues) this.#follow(queue)
    if (this.#stopping === undefined) this.#pump.nudge()
  }

  /** Brokers deliver nothing of a queue that is paused, or whose services are all held. */
  #follow(queue: string, paused = this.#paused.has(queue)): void {
    if (paused) this.#paused.add(queue)
    else this.#paused.delete(queue)
    const lanes = this.#slots.lanes.filter(({ definition }) => definition.queue === queue)
    const shut = lanes.every(({ service }) => service !== undefined && service.allowance < 1)
    this.#hands?.setPaused(queue, paused || shut)
  }

  /** One that waited for its rate limit does not start here: held for its turn, or given back. */
  #return(held: Held, hold?: Hold): void {
    this.#slots.unreserve(held)
    const outcome = { type: 'interrupted', started: false, ...(hold && { hold }) } as const
    this.#executor.settle(held, this.#policyOf(held), outcome)
  }

  #policyOf({ job, lane }: Held): Policy {
    return this.#runtime.policies.for(lane.definition.policy, job)
  }

  #open(session: SessionId): void {
    this.#session = session
    this.#claims.open(session)
    this.#wake()
  }

  #wake(): void {
    this.#looks.stir()
    this.#pump.nudge()
  }

  #lapse(reason: string): void {
    const jobs = this.#slots.running().filter(({ job }) => !this.#onBroker(job))
    this.#runtime.announce('worker.lapsed', () => ({ worker: this.name, reason, jobs: jobs.map(({ job }) => job.id) }))
    this.#standby.standDown()
    void this.#claims.close()
    for (const { abort } of jobs) abort.abort(new RedriveError('LEASE_LOST', `The lease was lost: ${reason}`))
    this.#giveBack(({ job }) => !this.#onBroker(job))
  }

  #cancel(jobs: readonly { id: JobId; reason: string }[]): void {
    for (const { id, reason } of jobs) {
      for (const { job, abort } of this.#slots.running()) {
        if (job.id === id) abort.abort(new RedriveError('CANCEL_REQUESTED', reason))
      }
    }
  }

  /**
   * Leaves cleanly (pitfall 9): unstarted jobs go back at once, running ones may finish within the grace time, the rest
   * are aborted and go back without spending an attempt.
   */
  stop({ graceMs = 30_000 }: { graceMs?: number } = {}): Promise<void> {
    this.#stopping ??= this.#leave(graceMs)
    return this.#stopping
  }

  async #leave(graceMs: number): Promise<void> {
    const { clock, announce } = this.#runtime
    this.#startup.abort()
    this.#stopFollowing()
    await this.#starting
    const fetching = this.#pump.stop()
    this.#standby.standDown()
    this.#giveBack()
    await this.#hands?.leave(LEAVE_LIMIT_MS)
    await fetching
    await this.#sync.stop()
    await this.#gate?.stop()
    await this.#quiet(graceMs)
    const late = this.#slots.running()
    for (const { abort } of late) {
      abort.abort(new RedriveError('SHUTTING_DOWN', 'The worker is stopping and its grace time is over'))
    }
    const limit = new AbortController()
    const timer = clock.timer(DRAIN_LIMIT_MS, () => limit.abort())
    await this.#quiet(DRAIN_LIMIT_MS)
    // What is overlooked here, others find as the jobs of an ended session.
    await waitAtMost(clock, LEAVE_LIMIT_MS, this.#standby.leave()).catch(() => {})
    await this.#hands?.acknowledged(limit.signal)
    await this.#settler.drain(limit.signal)
    timer.cancel()
    await this.#hands?.close(LEAVE_LIMIT_MS)
    await this.#claims.close()
    await this.#heartbeat
      .stop()
      .catch(error => announce('error', () => ({ where: `${this.name}: ending its session`, error })))
    announce('worker.stopped', () => ({ worker: this.name }))
  }

  /** Resolves when nothing runs any more, or after `limitMs`. */
  async #quiet(limitMs: number): Promise<void> {
    if (this.#slots.runningCount === 0) return
    const quiet = new AbortController()
    this.#onQuiet = () => quiet.abort()
    await sleep(this.#runtime.clock, limitMs, quiet.signal)
    this.#onQuiet = undefined
  }
}
