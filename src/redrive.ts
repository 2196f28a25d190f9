// Puts the rooms together: one Redrive is a ledger, a transport, the roles that move, and the operator's desk.
import { hostname } from 'node:os'
import { type Clock, type Random, systemClock, systemRandom } from './domain/clock.js'
import { invalid, RedriveError } from './domain/errors.js'
import type { EventName, Listener } from './domain/event.js'
import { LIMITS } from './domain/limits.js'
import type { PolicyOverride } from './domain/policy.js'
import type { ForeignClient } from './ledger/database.js'
import { recordInProcess } from './ledger/in-process.js'
import { migrate } from './ledger/migrate.js'
import { type DatabaseChoice, openDatabase } from './ledger/open.js'
import { ensureQueues } from './ledger/queue.js'
import { type RecoveryRun, type RecoveryStatistics, recoveryStatistics } from './ledger/recovery-run.js'
import { ensureHistoryDays } from './ledger/retention.js'
import { checkSchemaName } from './ledger/schema-name.js'
import { lapseAllSessions } from './ledger/session.js'
import { openInstances } from './open-instances.js'
import { type DeadLetters, deadLetters } from './operator/dead-letters.js'
import { type Jobs, jobs } from './operator/jobs.js'
import { type Queues, queues } from './operator/queues.js'
import { parsePolicy } from './policy/effective.js'
import { identityOf } from './runtime/attempt.js'
import type { AnyJobDefinition, JobDefinition } from './runtime/definition.js'
import { callInProcess, type InProcessRuntime } from './runtime/in-process.js'
import { DEFAULT_RETENTION, type Retention } from './runtime/janitor.js'
import type { Loop } from './runtime/loop.js'
import { checkPayload, decodePayload, encodePayload } from './runtime/payload.js'
import { Policies } from './runtime/policies.js'
import { type BatchItem, type Enqueued, type EnqueueOptions, newJob } from './runtime/producer.js'
import { promoter } from './runtime/promoter.js'
import { Recovery } from './runtime/recovery.js'
import type { Runtime } from './runtime/runtime.js'
import { Worker } from './runtime/worker.js'
import { readSettings } from './settings.js'
import { createEmitter } from './telemetry/emitter.js'
import { jobLog, type Logger, stderrLogger } from './telemetry/log.js'
import { postgresTransport } from './transport/transports/postgres.js'

export interface RedriveOptions {
  /** Undefined: embedded, on disk. ':memory:': embedded, in memory. A postgres:// URL, a pg Pool, or anything with query. */
  readonly database?: DatabaseChoice
  /** Folder of the embedded database (REDRIVE_DATA, .redrive). */
  readonly dataDir?: string
  /** Schema of the ledger's tables (REDRIVE_SCHEMA, redrive). */
  readonly schema?: string
  /** What holds for jobs that say nothing themselves. */
  readonly retry?: PolicyOverride
  readonly recoveryIntervalMs?: number
  readonly retention?: Partial<Retention>
  /** How long a worker may be silent before its jobs are rescued. */
  readonly leaseMs?: number
  /** How often an idle worker looks for work that nothing announced. */
  readonly pollMs?: number
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
  /** Off: do not LISTEN (behind a transaction pooler); polling alone then finds work. */
  readonly listen?: boolean
  /** Off: expect the schema to be there and up to date. */
  readonly migrate?: boolean
  readonly logger?: Logger
  /** Who this process is, in sessions and records of recovery runs. */
  readonly name?: string
  /** The version of your own code, kept with each worker's session. */
  readonly version?: string
  readonly env?: Readonly<Record<string, string | undefined>>
  readonly clock?: Clock
  readonly random?: Random
  /** For tests: the time to use instead of the database's clock. */
  readonly now?: () => Date | undefined
}

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
  readonly queues: Queues
  readonly jobs: Jobs
}

const DEFAULTS = { leaseMs: 15_000, pollMs: 2_000, concurrency: 10 } as const

export async function openRedrive(options: RedriveOptions = {}): Promise<Redrive> {
  const settings = readSettings(options.env ?? process.env)
  const { clock = systemClock, random = systemRandom, now } = options
  // Before anything is opened: a bad option changes nothing.
  const base = { ...settings.policy, ...(options.retry && parsePolicy(options.retry, 'retry')) }
  const configuration: Configuration = {
    name: options.name ?? `${hostname()}:${process.pid}`,
    version: options.version ?? null,
    leaseMs: between('leaseMs', options.leaseMs ?? DEFAULTS.leaseMs, 300, 3_600_000),
    pollMs: between('pollMs', options.pollMs ?? DEFAULTS.pollMs, 10, 60_000),
    recoveryIntervalMs: between(
      'recoveryIntervalMs',
      options.recoveryIntervalMs ?? settings.recoveryIntervalMs,
      100,
      86_400_000,
    ),
    retention: checkRetention({ ...DEFAULT_RETENTION, ...options.retention }),
  }
  const db = await openDatabase(options.database, {
    schema: options.schema === undefined ? settings.schema : checkSchemaName(options.schema),
    folder: options.dataDir ?? settings.folder,
    clock,
    ...(now && { now: () => now()?.toISOString() ?? null }),
    ...(options.poolSize !== undefined && { poolSize: between('poolSize', options.poolSize, 2, 1_000) }),
    ...(options.statementTimeoutMs !== undefined && {
      statementTimeoutMs: between('statementTimeoutMs', options.statementTimeoutMs, 100, 3_600_000),
    }),
    ...(options.listen !== undefined && { listen: options.listen }),
  })
  try {
    if (options.migrate !== false) await migrate(db)
    // Without the right to make them, history goes to its default partition until recovery runs as someone who has it.
    await ensureHistoryDays(db, 3).catch(() => {})
    if (db.exclusive) await lapseAllSessions(db)
    const { announce, on } = createEmitter()
    const logger = options.logger ?? stderrLogger(settings.logLevel, clock)
    const runtime: Runtime = {
      db,
      transport: postgresTransport(db),
      clock,
      random,
      announce,
      policies: new Policies(base),
      logFor: jobLog(logger),
      onDeferred: delayMs => redrive.expectDue(delayMs),
    }
    on('error', ({ where, error }) =>
      logger.warn({ where, error: (error as Error)?.message ?? String(error) }, 'will be tried again'),
    )
    const redrive = new Redrive(runtime, on, configuration)
    openInstances.add(redrive)
    return redrive
  } catch (error) {
    await db.close().catch(() => {})
    throw error
  }
}

interface Configuration {
  readonly name: string
  readonly version: string | null
  readonly leaseMs: number
  readonly pollMs: number
  readonly recoveryIntervalMs: number
  readonly retention: Retention
}

export class Redrive {
  readonly #operator: Operator
  /** Listens to what happens; returns a function that stops listening. */
  readonly on: <Name extends EventName>(name: Name, listener: Listener<Name>) => () => void
  readonly #runtime: Runtime
  readonly #configuration: Configuration
  readonly #recovery: Recovery
  readonly #promoter: Loop
  readonly #workers = new Set<Worker>()
  #closing: Promise<void> | undefined

  /** Use `openRedrive`. */
  constructor(runtime: Runtime, on: Redrive['on'], configuration: Configuration) {
    this.#runtime = runtime
    this.on = on
    this.#configuration = configuration
    const { db, transport } = runtime
    const desk = { db, wake: (queue: string) => transport.wake(queue) }
    this.#operator = { deadLetters: deadLetters(desk), queues: queues(desk), jobs: jobs(desk) }
    this.#promoter = promoter(runtime)
    this.#recovery = new Recovery(runtime, {
      intervalMs: configuration.recoveryIntervalMs,
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
    return items.length === 0 ? [] : this.#publish(definition, items, options.tx)
  }

  async #publish(
    definition: AnyJobDefinition,
    items: readonly BatchItem<unknown>[],
    tx: ForeignClient | undefined,
  ): Promise<Enqueued[]> {
    this.#checkOpen()
    const { clock, transport, announce } = this.#runtime
    const made = items.map(({ payload, options = {} }) => newJob(clock, definition, payload, options))
    if (definition.schema) await Promise.all(made.map(job => checkPayload(definition, job.payloadText)))
    const enqueued = await transport.publish(made, tx)
    for (const [index, { deduplicated }] of enqueued.entries()) {
      const job = made[index]
      if (job && !deduplicated) announce('job.enqueued', () => ({ job: identityOf(job) }))
    }
    for (const { delayMs, runAt } of made)
      if (delayMs !== undefined || runAt !== undefined) this.expectDue(delayMs ?? 0)
    return enqueued
  }

  /** A job will be due in so long: be awake then. */
  expectDue(delayMs: number): void {
    this.#promoter.nudgeIn(delayMs)
  }

  /** Starts a worker for these jobs in this process, and the roles that keep the ledger moving. */
  work(definitions: readonly AnyJobDefinition[], options: WorkOptions = {}): Worker {
    this.#checkOpen()
    const { leaseMs, pollMs, version } = this.#configuration
    const name = options.name ?? `${this.#configuration.name}/${this.#workers.size + 1}`
    const worker = new Worker(this.#runtime, chosen(definitions, options.queues), {
      name,
      host: hostname(),
      pid: process.pid,
      version,
      concurrency: between('concurrency', options.concurrency ?? DEFAULTS.concurrency, 1, 100_000),
      leaseMs,
      pollMs,
    })
    this.#workers.add(worker)
    this.#promoter.start()
    this.#recovery.start()
    return worker
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
    const { db } = this.#runtime
    return {
      ...this.#runtime,
      record: async end => {
        await ensureQueues(db, [end.job.queue])
        await recordInProcess(db, end)
      },
    }
  }

  /** One recovery run now; undefined when another is under way. */
  async recover(): Promise<RecoveryRun | undefined> {
    this.#checkOpen()
    return this.#recovery.run()
  }

  async recoveryStatus(): Promise<RecoveryStatistics> {
    this.#checkOpen()
    return recoveryStatistics(this.#runtime.db)
  }

  /** Stops the workers (within their grace time) and everything else, then closes the database. */
  close(options: { graceMs?: number } = {}): Promise<void> {
    this.#closing ??= this.#close(options)
    return this.#closing
  }

  async #close(options: { graceMs?: number }): Promise<void> {
    openInstances.delete(this)
    await Promise.all([...this.#workers].map(worker => worker.stop(options)))
    await Promise.all([this.#promoter.stop(), this.#recovery.stop()])
    await this.#runtime.transport.close()
    await this.#runtime.db.close()
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new RedriveError('ALREADY_CLOSED', 'This Redrive was closed')
  }
}

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

function checkRetention({ finishedDays, resolvedDeadLetterDays }: Retention): Retention {
  return {
    finishedDays: between('retention.finishedDays', finishedDays, 0, 36_500),
    resolvedDeadLetterDays: between('retention.resolvedDeadLetterDays', resolvedDeadLetterDays, 0, 36_500),
  }
}

function between(what: string, value: number, least: number, most: number): number {
  if (!(Number.isInteger(value) && value >= least && value <= most)) {
    throw invalid(what, value, `a whole number from ${least} to ${most}`)
  }
  return value
}
