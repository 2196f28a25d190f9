// A worker's life: it begins, works, and leaves cleanly. It holds one session, whose lease is the right to everything it runs;
// without that right it starts nothing and stops what runs. How jobs come to it is the intake's, what becomes of them the
// workload's; here they are told what the fleet says: of the session, of pauses, of services.
import { sleep, type Timer, waitAtMost } from '../domain/clock.js'
import { RedriveError } from '../domain/errors.js'
import type { JobId, SessionId } from '../domain/ids.js'
import { announceJobTypes } from '../ledger/job-type.js'
import { ensureQueues } from '../ledger/queue.js'
import { policyAsJson } from '../policy/effective.js'
import type { AnyJobDefinition } from './definition.js'
import { Heartbeat } from './heartbeat.js'
import { Intake } from './intake.js'
import { Prefetch } from './prefetch.js'
import { type QueueSync, queueSync } from './queue-sync.js'
import type { Runtime } from './runtime.js'
import { Slots } from './slots.js'
import { Workload } from './workload.js'

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

const SETTLES_IN_MS = 1_000
const DRAIN_LIMIT_MS = 10_000
/** How long a broker, or the ledger on a broker's behalf, may take when a worker leaves. */
const LEAVE_LIMIT_MS = 5_000

export class Worker {
  readonly name: string
  readonly #runtime: Runtime
  readonly #options: WorkerOptions
  readonly #queues: readonly string[]
  readonly #paused = new Set<string>()
  readonly #slots: Slots
  readonly #heartbeat: Heartbeat
  readonly #sync: QueueSync
  readonly #workload: Workload
  readonly #intake: Intake
  readonly #startup = new AbortController()
  readonly #stopFollowing: () => void
  readonly #starting: Promise<void>
  #settlesIn: Timer | undefined
  #stopping: Promise<void> | undefined

  constructor(runtime: Runtime, definitions: readonly AnyJobDefinition[], options: WorkerOptions) {
    const { clock, random, db } = runtime
    const { name, concurrency, pollMs } = options
    this.name = name
    this.#runtime = runtime
    this.#options = options
    this.#queues = [...new Set(definitions.map(definition => definition.queue))]
    this.#slots = new Slots(definitions, concurrency, service => runtime.services.of(service))
    this.#heartbeat = new Heartbeat({
      db,
      clock,
      random,
      session: { ...options, worker: name, queues: this.#queues },
      onOpen: session => this.#open(session),
      onLapse: reason => this.#lapse(reason),
      onCancel: jobs => this.#cancel(jobs),
      onError: error => this.#report('renewing the lease', error),
    })
    this.#sync = queueSync(runtime, {
      lanes: definitions,
      onPaused: queue => this.#workload.giveBack(({ job }) => job.queue === queue),
      onSettings: (queue, paused) => this.#follow(queue, paused),
      onError: error => this.#report('queues', error),
    })
    const shared = {
      worker: name,
      definitions,
      slots: this.#slots,
      prefetch: new Prefetch(),
      heartbeat: this.#heartbeat,
      onError: (where: string, error: unknown) => this.#report(where, error),
    }
    this.#workload = new Workload(runtime, {
      ...shared,
      concurrency,
      onRoom: () => this.#intake.nudge(),
      onFinished: () => this.#intake.jobFinished(),
    })
    this.#intake = new Intake(runtime, {
      ...shared,
      pollMs,
      paused: this.#paused,
      workload: this.#workload,
      onCalm: () => this.#hasSettledIn(),
    })
    this.#stopFollowing = runtime.services.onChange(() => this.#followServices())
    this.#starting = this.#start(definitions)
    this.#settlesIn = clock.timer(SETTLES_IN_MS, () => this.#hasSettledIn(), { background: true })
  }

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
    return this.#intake.answeredAgoMs
  }

  async #start(definitions: readonly AnyJobDefinition[]): Promise<void> {
    const { db, clock, random, announce, policies, services } = this.#runtime
    const settings = policyAsJson(policies.settings)
    const types = definitions.map(({ name, queue, service = null, policy }) => {
      return { name, queue, service, policy: policyAsJson(policy), settings }
    })
    for (let pauseMs = 100; !this.#startup.signal.aborted; pauseMs = Math.min(pauseMs * 2, 5_000)) {
      try {
        // One after the other on one connection: to open several at once takes longer.
        const session = await this.#heartbeat.start()
        await ensureQueues(db, this.#queues)
        await announceJobTypes(db, types)
        await services.follow(definitions.flatMap(({ service }) => service ?? []))
        // Policies and pauses are known before the first job comes, from whomever.
        await this.#sync.start()
        if (this.#runtime.carriers && !this.#startup.signal.aborted) {
          this.#workload.openHands([...this.#paused])
          this.#followServices()
        }
        announce('worker.started', () => ({ worker: this.name, session }))
        this.#workload.start()
        if (!this.#startup.signal.aborted) this.#intake.start()
        return
      } catch (error) {
        this.#report('starting', error)
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

  #open(session: SessionId): void {
    this.#workload.open(session)
    this.#intake.open(session)
  }

  #lapse(reason: string): void {
    const jobs = this.#slots.running().filter(({ job }) => !this.#workload.isOnBroker(job))
    this.#runtime.announce('worker.lapsed', () => ({ worker: this.name, reason, jobs: jobs.map(({ job }) => job.id) }))
    this.#intake.standDown()
    void this.#intake.close()
    for (const { abort } of jobs) abort.abort(new RedriveError('LEASE_LOST', `The lease was lost: ${reason}`))
    this.#workload.giveBack(({ job }) => !this.#workload.isOnBroker(job))
  }

  #cancel(jobs: readonly { id: JobId; reason: string }[]): void {
    for (const { id, reason } of jobs) {
      for (const { job, abort } of this.#slots.running()) {
        if (job.id === id) abort.abort(new RedriveError('CANCEL_REQUESTED', reason))
      }
    }
  }

  /** What was claimed ahead of a service that is held now goes back; of one that is let through again, more is fetched. */
  #followServices(): void {
    if (this.#slots.lanes.some(({ service }) => service?.free === false)) this.#intake.standDown()
    this.#workload.giveBack(({ lane }) => lane.service !== undefined && lane.service.allowance < 1)
    for (const queue of this.#queues) this.#follow(queue)
    if (this.#stopping === undefined) this.#intake.nudge()
  }

  /** Brokers deliver nothing of a queue that is paused, or whose services are all held. */
  #follow(queue: string, paused = this.#paused.has(queue)): void {
    if (paused) this.#paused.add(queue)
    else this.#paused.delete(queue)
    const lanes = this.#slots.lanes.filter(({ definition }) => definition.queue === queue)
    const shut = lanes.every(({ service }) => service !== undefined && service.allowance < 1)
    this.#workload.hands?.setPaused(queue, paused || shut)
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
    this.#workload.shut()
    this.#startup.abort()
    this.#stopFollowing()
    await this.#starting
    const fetching = this.#intake.stop()
    this.#workload.giveBack()
    await this.#workload.hands?.leave(LEAVE_LIMIT_MS)
    await fetching
    await this.#sync.stop()
    await this.#workload.stop()
    await this.#workload.quiet(graceMs)
    for (const { abort } of this.#slots.running()) {
      abort.abort(new RedriveError('SHUTTING_DOWN', 'The worker is stopping and its grace time is over'))
    }
    const limit = new AbortController()
    const timer = clock.timer(DRAIN_LIMIT_MS, () => limit.abort())
    await this.#workload.quiet(DRAIN_LIMIT_MS)
    // What is overlooked here, others find as the jobs of an ended session.
    await waitAtMost(clock, LEAVE_LIMIT_MS, this.#intake.leave()).catch(() => {})
    await this.#workload.drain(limit.signal)
    timer.cancel()
    await this.#workload.hands?.close(LEAVE_LIMIT_MS)
    await this.#intake.close()
    await this.#heartbeat.stop().catch(error => this.#report('ending its session', error))
    announce('worker.stopped', () => ({ worker: this.name }))
  }

  #report(where: string, error: unknown): void {
    this.#runtime.announce('error', () => ({ where: `${this.name}: ${where}`, error }))
  }
}
