// One Redrive: a ledger, a transport, the roles that move, and the operator's desk, behind the functions a user calls.
import { hostname } from 'node:os'
import { invalid, RedriveError } from './domain/errors.js'
import type { EventName, Events, Listener } from './domain/event.js'
import type { NewJob } from './domain/job.js'
import { LIMITS } from './domain/limits.js'
import type { Database, ForeignClient } from './ledger/database.js'
import { type InProcessEnd, recordInProcess } from './ledger/in-process.js'
import { ensureQueues } from './ledger/queue.js'
import { type RecoveryRun, type RecoveryStatistics, recoveryStatistics } from './ledger/recovery-run.js'
import { openInstances } from './open-instances.js'
import { type Audit, audit } from './operator/audit.js'
import { type DeadLetters, deadLetters } from './operator/dead-letters.js'
import { type Diagnosis, examine } from './operator/doctor.js'
import { type FleetWatch, fleetWatch } from './operator/fleet-news.js'
import { type GaugeDesk, gauges } from './operator/gauges.js'
import { type Groups, groups } from './operator/groups.js'
import { readHealth } from './operator/health.js'
import { type JobSearch, jobSearch } from './operator/job-search.js'
import { type Jobs, jobs } from './operator/jobs.js'
import { type Policies, policies } from './operator/policies.js'
import { type Queues, queues } from './operator/queues.js'
import { type RateLimits, rateLimits } from './operator/rate-limits.js'
import { type Requests, requests } from './operator/requests.js'
import { type Services, services } from './operator/services.js'
import { type StatisticsDesk, statistics } from './operator/statistics.js'
import { type Tokens, tokens } from './operator/tokens.js'
import { type Triage, triage } from './operator/triage.js'
import { type Workers, workers } from './operator/workers.js'
import type { Health } from './policy/health.js'
import type { HealthThresholds } from './policy/health-thresholds.js'
import { identityOf } from './runtime/attempt.js'
import type { AnyJobDefinition, JobDefinition } from './runtime/definition.js'
import { type GroupWatch, groupWatch } from './runtime/group-watch.js'
import { healthWatch, type OnHealth } from './runtime/health-watch.js'
import { callInProcess, type InProcessRuntime } from './runtime/in-process.js'
import type { InboxRuntime } from './runtime/inbox.js'
import type { Retention } from './runtime/janitor.js'
import type { Loop, Role } from './runtime/loop.js'
import { mirrors } from './runtime/mirror.js'
import { namedDefinition } from './runtime/named-definition.js'
import { checkPayload, decodePayload, encodePayload } from './runtime/payload.js'
import { type BatchItem, type Enqueued, type EnqueueOptions, newJob } from './runtime/producer.js'
import { promoter } from './runtime/promoter.js'
import { pulse } from './runtime/pulse.js'
import { Recovery } from './runtime/recovery.js'
import type { Runtime } from './runtime/runtime.js'
import { Worker } from './runtime/worker.js'

export interface WorkOptions {
  /** Only jobs of these queues. */
  readonly queues?: readonly string[]
  /** At most so many jobs at once. */
  readonly concurrency?: number
  readonly name?: string
}

export interface PerformOptions {
  readonly signal?: AbortSignal
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
}

export interface Operator {
  readonly deadLetters: DeadLetters
  readonly groups: Groups
  readonly queues: Queues
  readonly policies: Policies
  readonly rateLimits: RateLimits
  readonly jobs: Jobs
  readonly triage: Triage
  /** How well it goes, and why. */
  readonly health: () => Promise<Health>
  /** What is wrong with the database, the ledger or who works on it, and what to do about each. */
  readonly doctor: () => Promise<Diagnosis>
  /** What failed over a range of time, by kind, service and queue. */
  readonly statistics: StatisticsDesk['statistics']
  /** What fails most. */
  readonly failureReasons: StatisticsDesk['failureReasons']
  readonly services: Services
  /** Jobs by state, queue, name or tenant, newest first. */
  readonly findJobs: JobSearch
  readonly workers: Workers
  readonly audit: Audit
  readonly tokens: Tokens
  /** What the HTTP API remembers of requests with an Idempotency-Key. */
  readonly requests: Requests
  /** What happened in the whole fleet since the last look, for whoever watches. */
  readonly fleetNews: FleetWatch
  /** What the ledger holds, for metrics; told by one process of the fleet. */
  readonly gauges: GaugeDesk
}

/** For a job that is enqueued by its name: its queue, where its workers do not say which. */
export interface NamedEnqueueOptions extends EnqueueOptions {
  readonly queue?: string
}

const DEFAULT_CONCURRENCY = 10

/** What `openRedrive` has checked. */
export interface Configuration {
  /** What people ask goes through this; undefined: through the ledger that workers use. */
  readonly desk: Database | undefined
  readonly name: string
  readonly version: string | null
  readonly leaseMs: number
  readonly pollMs: number
  readonly recoveryIntervalMs: number
  readonly retention: Retention
  readonly health: {
    readonly thresholds: HealthThresholds
    readonly onHealth: OnHealth | undefined
    readonly intervalMs: number
  }
}

export class Redrive {
  readonly #operator: Operator
  /** Listens to what happens; returns a function that stops listening. */
  readonly on: <Name extends EventName>(name: Name, listener: Listener<Name>) => () => void
  readonly #runtime: Runtime
  readonly #configuration: Configuration
  readonly #recovery: Recovery
  readonly #promoter: Loop
  readonly #pulse: Loop
  readonly #mirrors: Role | undefined
  readonly #healthWatch: Loop | undefined
  readonly #groups: GroupWatch
  /** With what each works on. */
  readonly #workers = new Map<Worker, readonly AnyJobDefinition[]>()
  #closing: Promise<void> | undefined

  /** Use `openRedrive`. */
  constructor(runtime: Runtime, on: Redrive['on'], configuration: Configuration) {
    this.#runtime = runtime
    this.on = on
    this.#configuration = configuration
    const { transport } = runtime
    const desk = { db: configuration.desk ?? runtime.db, wake: (queue: string) => transport.wake(queue) }
    this.#operator = {
      deadLetters: deadLetters(desk),
      groups: groups(desk),
      queues: queues(desk),
      policies: policies(desk, runtime.policies.settings),
      rateLimits: rateLimits(desk),
      jobs: jobs(desk, runtime.policies.settings),
      triage: triage({ ...desk, announce: runtime.announce }),
      health: () => this.health(),
      doctor: () => examine(desk.db, { clock: runtime.clock, recoveryIntervalMs: configuration.recoveryIntervalMs }),
      ...statistics(desk),
      services: services({
        ...desk,
        announce: runtime.announce,
        changed: () => runtime.services.nudge(),
        ofCode: runtime.services.ofCode,
      }),
      findJobs: jobSearch(desk),
      workers: workers(desk),
      audit: audit(desk),
      tokens: tokens(desk),
      requests: requests(desk),
      fleetNews: fleetWatch(desk),
      gauges: gauges(desk),
    }
    this.#promoter = promoter(runtime)
    this.#pulse = pulse(runtime)
    this.#mirrors = mirrors(runtime)
    const { onHealth, intervalMs } = configuration.health
    this.#healthWatch = onHealth && healthWatch(runtime, { look: () => this.#readHealth(), onHealth, intervalMs })
    this.#healthWatch?.start()
    this.#groups = groupWatch(runtime)
    on('job.failed', ({ failure }) => this.#groups.failed(failure.fingerprint))
    this.#recovery = new Recovery(runtime, {
      intervalMs: configuration.recoveryIntervalMs,
      leaseMs: configuration.leaseMs,
      retention: configuration.retention,
      worker: configuration.name,
    })
  }

  /** What a person may do: look, retry, close, pause, clean. */
  get operator(): Operator {
    this.#checkOpen()
    return this.#operator
  }

  /** Puts one job in line. Durable when it returns or, with `tx`, when you commit. */
  async enqueue<Input>(
    // biome-ignore lint/suspicious/noExplicitAny: any payload and result go with this input
    definition: JobDefinition<Input, any, any>,
    payload: Input,
    options: EnqueueOptions = {},
  ): Promise<Enqueued> {
    const [enqueued] = await this.#publish(definition, [{ payload, options }], options.tx)
    return enqueued as Enqueued
  }

  /**
   * Puts one job in line by its name, for whoever has no definition of it: queue, service and attempts are what its workers
   * last announced. Its payload is checked by the schema that a worker of this process has for it; else when it runs.
   */
  async enqueueNamed(name: string, payload: unknown, options: NamedEnqueueOptions = {}): Promise<Enqueued> {
    this.#checkOpen()
    const { queue, ...rest } = options
    const announced = await namedDefinition(this.#runtime.db, name, queue)
    const schema = this.#schemaOf(announced)
    return this.enqueue(schema ? { ...announced, schema } : announced, payload, rest)
  }

  #schemaOf(job: { readonly queue: string; readonly name: string }): AnyJobDefinition['schema'] {
    const worked = [...this.#workers.values()].flat()
    return worked.find(({ queue, name }) => queue === job.queue && name === job.name)?.schema
  }

  /** Puts many jobs in line, all or none. */
  async enqueueMany<Input>(
    // biome-ignore lint/suspicious/noExplicitAny: any payload and result go with this input
    definition: JobDefinition<Input, any, any>,
    items: readonly BatchItem<Input>[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<Enqueued[]> {
    if (items.length > LIMITS.enqueueBatch) {
      throw invalid('The number of jobs in one enqueueMany', items.length, `at most ${LIMITS.enqueueBatch}`)
    }
    const bare = items.findIndex(item => !(typeof item === 'object' && item !== null && 'payload' in item))
    if (bare >= 0) throw invalid(`Item ${bare} of enqueueMany`, 'without a payload', '{ payload, options? }')
    return items.length === 0 ? [] : this.#publish(definition, items, options.tx)
  }

  async #publish(
    definition: AnyJobDefinition,
    items: readonly BatchItem<unknown>[],
    tx: ForeignClient | undefined,
  ): Promise<Enqueued[]> {
    this.#checkOpen()
    const { clock, transport, announce, tracing } = this.#runtime
    this.#route(definition)
    const made = items.map(({ payload, options = {} }) => newJob(clock, definition, payload, options))
    if (definition.schema) await Promise.all(made.map(job => checkPayload(definition, job.payloadText)))
    const enqueued = await (tracing?.isActive
      ? tracing.enqueue(made, jobs => transport.publish(jobs, tx))
      : transport.publish(made, tx))
    for (const [index, job] of made.entries()) {
      if (!enqueued[index]?.deduplicated) announce('job.enqueued', enqueuedEvent, job)
      if (job.delayMs !== undefined || job.runAt !== undefined) this.expectDue(job.delayMs ?? 0)
    }
    return enqueued
  }

  /** A job's definition may say what carries its queue. */
  #route({ queue, transport, name }: AnyJobDefinition): void {
    const { carriers } = this.#runtime
    if (carriers) carriers.route(queue, transport)
    else if (transport !== undefined && transport !== 'postgres') {
      const how = `one that is set up: openRedrive({ transports: { ${transport}: ${transport}(…) } })`
      throw invalid(`The transport of job ${name}`, transport, how)
    }
  }

  /** A job will be due in so long: be awake then. */
  expectDue(delayMs: number): void {
    // A worker that has not settled in yet may have failures already.
    if (this.#workers.size > 0 && this.#closing === undefined) this.#promoter.start()
    this.#promoter.nudgeIn(delayMs)
  }

  /** Starts a worker for these jobs in this process, and the roles that keep the ledger moving. */
  work(definitions: readonly AnyJobDefinition[], options: WorkOptions = {}): Worker {
    this.#checkOpen()
    const { leaseMs, pollMs, version } = this.#configuration
    const name = options.name ?? `${this.#configuration.name}/${this.#workers.size + 1}`
    const handled = chosen(definitions, options.queues)
    for (const definition of handled) this.#route(definition)
    const worker = new Worker(this.#runtime, handled, {
      name,
      host: hostname(),
      pid: process.pid,
      version,
      concurrency: between('concurrency', options.concurrency ?? DEFAULT_CONCURRENCY, 1, 100_000),
      leaseMs,
      pollMs,
      onSettledIn: () => this.#closing === undefined && this.maintain(),
    })
    this.#workers.set(worker, handled)
    return worker
  }

  /** Keeps the ledger moving without working on jobs, for a process that only serves: due jobs, recovery, retention. */
  maintain(): void {
    this.#checkOpen()
    this.#promoter.start()
    this.#pulse.start()
    this.#mirrors?.start()
    this.#recovery.start()
  }

  /** Runs a job here and now, with retries, and awaits its result. Throws what its last attempt threw. */
  async perform<Input, Result>(
    // biome-ignore lint/suspicious/noExplicitAny: the payload follows from the input
    definition: JobDefinition<Input, any, Result>,
    payload: Input,
    options: PerformOptions = {},
  ): Promise<Result> {
    this.#checkOpen()
    const { signal, ...about } = options
    const payloadText = encodePayload(definition, payload)
    await checkPayload(definition, payloadText)
    return (await callInProcess(this.inProcess, {
      definition,
      payloadText,
      payload: () => decodePayload(definition, payloadText),
      signal,
      about,
      recorded: 'always',
    })) as Result
  }

  /** What `retryable` needs of a Redrive. */
  get inProcess(): InProcessRuntime {
    return { ...this.#runtime, record: end => this.#record(end) }
  }

  /** What an inbox needs of a Redrive. */
  get intake(): InboxRuntime {
    this.#checkOpen()
    return { ...this.#runtime, record: end => this.#record(end) }
  }

  async #record(end: InProcessEnd): Promise<void> {
    const { db } = this.#runtime
    await ensureQueues(db, [end.job.queue])
    await recordInProcess(db, end)
    for (const { outcome } of end.attempts) if ('failure' in outcome) this.#groups.failed(outcome.failure.fingerprint)
  }

  /** One recovery run now; undefined when another is under way. */
  async recover(): Promise<RecoveryRun | undefined> {
    this.#checkOpen()
    return this.#recovery.run()
  }

  /** How well it goes: healthy, degraded or unhealthy, with a score and the reasons. */
  async health(): Promise<Health> {
    this.#checkOpen()
    return this.#readHealth()
  }

  #readHealth(): Promise<Health> {
    const { db, clock } = this.#runtime
    const { desk = db, recoveryIntervalMs, health } = this.#configuration
    return readHealth(desk, { thresholds: health.thresholds, recoveryIntervalMs, now: () => clock.now() })
  }

  async recoveryStatus(): Promise<RecoveryStatistics> {
    this.#checkOpen()
    return recoveryStatistics(this.#configuration.desk ?? this.#runtime.db)
  }

  /** Stops the workers (within their grace time) and everything else, then closes the database. */
  close(options: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options)
    return this.#closing
  }

  async #close(options: { graceMs?: number }): Promise<void> {
    openInstances.delete(this)
    await Promise.all([...this.#workers.keys()].map(worker => worker.stop(options)))
    await Promise.all([
      this.#healthWatch?.stop(),
      this.#pulse.stop(),
      this.#mirrors?.stop(),
      this.#promoter.stop(),
      this.#recovery.stop(),
    ])
    await this.#groups.stop()
    await this.#operator.gauges.leave().catch(() => {})
    await this.#runtime.services.stop()
    await this.#runtime.transport.close()
    await this.#configuration.desk?.close()
    await this.#runtime.db.close()
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new RedriveError('ALREADY_CLOSED', 'This Redrive was closed')
  }
}

const enqueuedEvent = (job: NewJob): Events['job.enqueued'] => ({ job: identityOf(job) })

function chosen(definitions: readonly AnyJobDefinition[], only: readonly string[] | undefined): AnyJobDefinition[] {
  const handled = definitions.filter(definition => only === undefined || only.includes(definition.queue))
  const unknown = only?.find(queue => !definitions.some(definition => definition.queue === queue))
  const known = [...new Set(definitions.map(definition => definition.queue))].join(', ')
  if (unknown !== undefined) throw invalid('A queue to work on', unknown, `one that the given jobs use: ${known}`)
  if (handled.length === 0) throw invalid('The list of jobs to work on', 'empty', 'at least one job')
  const without = handled.find(definition => !definition.handler)
  if (without)
    throw new RedriveError('HANDLER_MISSING', `Job ${without.name} has no handler, so it cannot be worked on`)
  const names = new Set<string>()
  for (const { queue, name } of handled) {
    const key = `${queue}\n${name}`
    if (names.has(key)) throw invalid('The list of jobs to work on', `${name} twice`, 'each job once')
    names.add(key)
  }
  return handled
}

export function between(what: string, value: number, least: number, most: number): number {
  if (!(Number.isInteger(value) && value >= least && value <= most)) {
    throw invalid(what, value, `a whole number from ${least} to ${most}`)
  }
  return value
}
