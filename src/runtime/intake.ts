// How a worker comes by jobs of the ledger: it asks for as many as there is room for, again and again while there are some and
// seldom when there are none; in calm times jobs are handed to it; and it finds those it did not hear of.
import type { SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { LaneDemand } from '../transport/transport.js'
import { Claims } from './claims.js'
import type { AnyJobDefinition } from './definition.js'
import type { Heartbeat } from './heartbeat.js'
import { Looks } from './looks.js'
import { type Loop, loop } from './loop.js'
import { fetchPaced } from './paced-fetch.js'
import type { Prefetch } from './prefetch.js'
import type { Runtime } from './runtime.js'
import type { Slots } from './slots.js'
import { Standby } from './standby.js'
import type { Workload } from './workload.js'

export interface IntakeOptions {
  readonly worker: string
  readonly definitions: readonly AnyJobDefinition[]
  /** How often to look for work when nothing wakes the worker. */
  readonly pollMs: number
  readonly slots: Slots
  readonly prefetch: Prefetch
  readonly heartbeat: Pick<Heartbeat, 'safe'>
  readonly workload: Workload
  /** Queues of which nothing is to start. */
  readonly paused: ReadonlySet<string>
  /** There is little to do. */
  readonly onCalm: () => void
  readonly onError: (where: string, error: unknown) => void
}

/** A job that was claimed ahead and has waited here so long is better off with a worker that is free. */
const LONGEST_WAIT_HERE_MS = 1_000

export class Intake {
  readonly #runtime: Runtime
  readonly #options: IntakeOptions
  readonly #claims: Claims
  readonly #looks: Looks
  readonly #standby: Standby
  readonly #pump: Loop

  constructor(runtime: Runtime, options: IntakeOptions) {
    const { clock, random, transport, announce } = runtime
    const { worker, definitions, pollMs, slots, workload, onError } = options
    this.#runtime = runtime
    this.#options = options
    this.#claims = new Claims({
      worker,
      lanes: definitions.map(({ queue, name }) => ({ queue, name })),
      transport,
      clock,
      announce,
      onWake: () => this.#wake(),
      onUp: () => this.#standby.listens(),
      onHanded: job => this.#standby.handed(!this.#take(job) || slots.freeCount < 1),
      onFound: jobs => {
        for (const job of jobs) this.#take(job)
      },
      whatIsHere: () => workload.whatIsHere(),
    })
    this.#looks = new Looks(clock, pollMs)
    this.#standby = new Standby({
      clock,
      random,
      // Brokers bring jobs by themselves.
      lanes: () => (workload.hands ? [] : slots.openLanes()),
      say: lanes => this.#claims.standBy(lanes),
      stand: ms => this.#claims.stand(ms),
      onError: error => onError('standing by', error),
    })
    this.#pump = loop({ clock, random, step: () => this.#fetch(), onError: error => onError('fetching', error) })
  }

  /** Milliseconds since it last asked for work and got an answer; undefined before the first time. */
  get answeredAgoMs(): number | undefined {
    return this.#claims.answeredAgoMs
  }

  start(): void {
    this.#pump.start()
  }

  /** From now on jobs are claimed under this session. */
  open(session: SessionId): void {
    this.#claims.open(session)
    this.#wake()
  }

  #wake(): void {
    this.#looks.stir()
    this.#pump.nudge()
  }

  /** Looks now: there may be room for more. */
  nudge(): void {
    this.#pump.nudge()
  }

  /** One more place is free. */
  jobFinished(): void {
    if (!this.#looks.isQuiet) this.#pump.nudge()
  }

  /** One look for work. Returns how long to wait for the next if nothing calls for it earlier. */
  async #fetch(): Promise<number> {
    const { clock } = this.#runtime
    const { pollMs, slots, prefetch, heartbeat, workload, onCalm } = this.#options
    const { current } = this.#claims
    this.#looks.begin()
    if (!current || !heartbeat.safe) return pollMs
    await this.#claims.findMissed()
    workload.giveBackOlder(clock.monotonic() - LONGEST_WAIT_HERE_MS)
    const pacedMs = await this.#fetchPaced(current)
    const askedAt = clock.monotonic()
    // A broker tells what there is: the ledger is asked for the rest only, when something woke us or it is time.
    if (workload.hands?.hasAllLanes && this.#looks.restMs > 0) return Math.min(pacedMs, this.#looks.restMs)
    const { demand, limit } = this.#demand()
    if (limit < 1) {
      workload.ledgerWaits(askedAt)
      return Math.min(pacedMs, pollMs)
    }
    const jobs = await this.#claims.fetch(demand, limit)
    const fetchedAt = clock.monotonic()
    workload.ledgerHadItsTurn()
    prefetch.fetched(askedAt, fetchedAt, jobs)
    this.#accept(current, jobs, fetchedAt)
    if (slots.freeCount < 1) this.#standby.standDown()
    const againMs = this.#looks.saw({ demand, limit, jobs, lanes: slots.lanes.length })
    if (againMs === 0) return 0
    if (this.#looks.isCalm) {
      onCalm()
      this.#standby.standUp()
    }
    return Math.min(pacedMs, againMs)
  }

  /** Before the others: a worker that is always full would otherwise never find out whether a service is back. */
  async #fetchPaced(claims: object): Promise<number> {
    const { services, clock } = this.#runtime
    const { slots, prefetch, workload } = this.#options
    const fetch = async (demand: readonly LaneDemand[], limit: number) => {
      // Permits are for either: what a broker has brought needs no claim.
      const arrived = workload.hands?.take(demand, limit) ?? []
      return arrived.length > 0 ? arrived : this.#claims.fetch(demand, limit)
    }
    const accept = (jobs: readonly ClaimedJob[]) => this.#accept(claims, jobs, clock.monotonic())
    return fetchPaced(services, slots, prefetch.target(clock.monotonic()), fetch, accept)
  }

  #demand(): { demand: LaneDemand[]; limit: number } {
    const { slots, prefetch, workload } = this.#options
    return workload.isBehind()
      ? { demand: [], limit: 0 }
      : slots.demand(prefetch.target(this.#runtime.clock.monotonic()))
  }

  #accept(claims: object, jobs: readonly ClaimedJob[], fetchedAt: number): void {
    this.#options.workload.accept(jobs, fetchedAt, claims === this.#claims.current)
  }

  /** One that was not asked for now: handed over, or found. */
  #take(job: ClaimedJob): boolean {
    const { workload, paused, slots, prefetch } = this.#options
    const { current } = this.#claims
    if (!current) return false
    const fetchedAt = this.#runtime.clock.monotonic()
    const hasPlace = !paused.has(job.queue) && !workload.isBehind() && slots.hasRoomFor(job, prefetch.target(fetchedAt))
    if (hasPlace) this.#accept(current, [job], fetchedAt)
    else workload.refuse(job, fetchedAt)
    return hasPlace
  }

  /** Nothing more is to be handed over for now. */
  standDown(): void {
    this.#standby.standDown()
  }

  /** Asks for nothing more. Resolves when what was being asked for has been answered. */
  stop(): Promise<void> {
    const fetching = this.#pump.stop()
    this.#standby.standDown()
    return fetching
  }

  /** Takes what has been handed over until now. */
  leave(): Promise<void> {
    return this.#standby.leave()
  }

  /** Without a session there is nothing to claim under. */
  close(): Promise<void> {
    return this.#claims.close()
  }
}
