// Opens a Redrive: checks every option before anything is touched, opens the ledger, and puts the rooms together.
import { hostname } from 'node:os'
import type { ServiceSettings } from './domain/breaker.js'
import { type Clock, type Random, systemClock, systemRandom } from './domain/clock.js'
import { invalid, RedriveError } from './domain/errors.js'
import type { PolicyOverride } from './domain/policy.js'
import type { Database } from './ledger/database.js'
import { migrate, pendingMigrations } from './ledger/migrate.js'
import { type DatabaseChoice, openDatabase, openDesk } from './ledger/open.js'
import { ensureHistoryDays } from './ledger/retention.js'
import { checkSchemaName } from './ledger/schema-name.js'
import { lapseAllSessions } from './ledger/session.js'
import { openInstances } from './open-instances.js'
import { parsePolicy } from './policy/effective.js'
import { type HealthOptions, parseHealthOptions } from './policy/health-thresholds.js'
import { parseService } from './policy/service-settings.js'
import { between, type Configuration, Redrive } from './redrive.js'
import { Services } from './runtime/breaker-sync.js'
import type { OnHealth } from './runtime/health-watch.js'
import { DEFAULT_RETENTION, type Retention } from './runtime/janitor.js'
import { Policies } from './runtime/policies.js'
import type { Runtime } from './runtime/runtime.js'
import { readSettings } from './settings.js'
import { createEmitter } from './telemetry/emitter.js'
import { jobLog, type Logger, type LogLevel } from './telemetry/log.js'
import { logEvents } from './telemetry/log-events.js'
import { tracing } from './telemetry/tracing.js'
import { type BrokerChoices, Carriers, type TransportName } from './transport/carriers.js'
import { carriedTransport } from './transport/transports/carried.js'
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
  /** Breaker and retry budget of services, by name, where the defaults do not fit. */
  readonly services?: Readonly<Record<string, ServiceSettings>>
  /** Brokers that may carry queues: `rabbitmq(…)` from redrive/transports/rabbitmq, `redis(…)` from redrive/transports/redis. */
  readonly transports?: BrokerChoices
  /** What carries a queue, where its jobs do not say it themselves. */
  readonly queues?: Readonly<Record<string, { readonly transport?: TransportName }>>
  readonly recoveryIntervalMs?: number
  readonly retention?: Partial<Retention>
  /** From when on a sign of ill health counts. */
  readonly health?: HealthOptions
  /** Told how well it goes, every `healthIntervalMs`. Without it nobody looks. */
  readonly onHealth?: OnHealth
  readonly healthIntervalMs?: number
  /** How long a worker may be silent before its jobs are rescued. */
  readonly leaseMs?: number
  /** How often an idle worker looks for work that nothing announced. */
  readonly pollMs?: number
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
  /** The same for what `operator` and the HTTP API ask, which have connections of their own. */
  readonly deskTimeoutMs?: number
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

const DEFAULTS = { leaseMs: 15_000, pollMs: 2_000, healthIntervalMs: 30_000, deskTimeoutMs: 5_000 } as const

export async function openRedrive(options: RedriveOptions = {}): Promise<Redrive> {
  const settings = readSettings(options.env ?? process.env)
  const { clock = systemClock, random = systemRandom, now } = options
  // Before anything is opened: a bad option changes nothing.
  const base = { ...settings.policy, ...(options.retry && parsePolicy(options.retry, 'retry')) }
  const services = checkServices(options.services ?? {})
  const configuration: Omit<Configuration, 'desk'> = {
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
    health: {
      thresholds: parseHealthOptions(options.health ?? {}),
      onHealth: options.onHealth,
      intervalMs: between('healthIntervalMs', options.healthIntervalMs ?? DEFAULTS.healthIntervalMs, 1_000, 86_400_000),
    },
  }
  const deskTimeoutMs = between('deskTimeoutMs', options.deskTimeoutMs ?? DEFAULTS.deskTimeoutMs, 100, 3_600_000)
  const opening = {
    schema: options.schema === undefined ? settings.schema : checkSchemaName(options.schema),
    folder: options.dataDir ?? settings.folder,
    clock,
    ...(now && { now: () => now()?.toISOString() ?? null }),
    ...(options.poolSize !== undefined && { poolSize: between('poolSize', options.poolSize, 2, 1_000) }),
    ...(options.statementTimeoutMs !== undefined && {
      statementTimeoutMs: between('statementTimeoutMs', options.statementTimeoutMs, 100, 3_600_000),
    }),
    ...(options.listen !== undefined && { listen: options.listen }),
  }
  const db = await openDatabase(options.database, opening)
  try {
    await prepare(db, options.migrate !== false)
    const { announce, on } = createEmitter()
    const logger = options.logger ?? (await ownLogger(settings.logLevel, clock))
    const ledger = postgresTransport(db, clock)
    const carriers = openCarriers(options, { clock, random, announce })
    const transport = carriers ? carriedTransport(ledger, carriers, clock) : ledger
    const parts = { db, transport, carriers, clock, random, announce }
    const runtime: Runtime = {
      ...parts,
      services: new Services(parts, services),
      policies: new Policies(base),
      logFor: jobLog(logger),
      tracing,
      onDeferred: delayMs => redrive.expectDue(delayMs),
    }
    logEvents(on, logger)
    const desk = openDesk(options.database, opening, deskTimeoutMs)
    const redrive = new Redrive(runtime, on, { ...configuration, desk })
    openInstances.add(redrive)
    return redrive
  } catch (error) {
    await db.close().catch(() => {})
    throw error
  }
}

/** Undefined: nothing is carried by a broker. */
function openCarriers(
  { transports = {}, queues = {}, env = process.env }: RedriveOptions,
  { clock, random, announce }: Pick<Runtime, 'clock' | 'random' | 'announce'>,
): Carriers | undefined {
  for (const [name, choice] of Object.entries(transports)) {
    if (choice && choice.name !== name) throw invalid(`transports.${name}`, choice.name, `what ${name}(…) gives`)
  }
  const routes = Object.entries(queues).flatMap(([queue, { transport }]) => (transport ? [[queue, transport]] : []))
  if (routes.length === 0 && Object.values(transports).every(choice => !choice)) return undefined
  const onError = (error: unknown) => announce('error', () => ({ where: 'broker', error }))
  return new Carriers(transports, Object.fromEntries(routes), { env, clock, random, onError })
}

/** Loaded where it is used: whoever brings a logger has no use for another. */
async function ownLogger(level: LogLevel, clock: Clock): Promise<Logger> {
  const { defaultLogger } = await import('./telemetry/default-logger.js')
  return defaultLogger(level, clock)
}

async function prepare(db: Database, mayMigrate: boolean): Promise<void> {
  if (mayMigrate) await migrate(db)
  else await checkMigrated(db)
  // Without the right to make them, history goes to its default partition until recovery runs as someone who has it.
  await ensureHistoryDays(db, 3).catch(() => {})
  if (db.exclusive) await lapseAllSessions(db)
}

async function checkMigrated(db: Database): Promise<void> {
  const [pending] = await pendingMigrations(db)
  if (pending === undefined) return
  const message = `The schema "${db.schema}" lacks migration ${pending}, and \`migrate\` is off`
  throw new RedriveError('SCHEMA_PENDING', message)
}

function checkRetention({ finishedDays, resolvedDeadLetterDays }: Retention): Retention {
  return {
    finishedDays: between('retention.finishedDays', finishedDays, 0, 36_500),
    resolvedDeadLetterDays: between('retention.resolvedDeadLetterDays', resolvedDeadLetterDays, 0, 36_500),
  }
}

function checkServices(services: Readonly<Record<string, ServiceSettings>>): Record<string, ServiceSettings> {
  return Object.fromEntries(
    Object.entries(services).map(([name, settings]) => [name, parseService(settings, `services.${name}`)]),
  )
}
