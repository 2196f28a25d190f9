// A process that works: a Redrive as the environment says, the jobs of the modules, and a clean end.
import type { Clock } from '../domain/clock.js'
import { type Log, type Logger, openRedrive, type Redrive, type Worker } from '../index.js'
import { databaseOf } from '../settings.js'
import { usageError } from './exit.js'
import { type AnyJob, type JobModule, setUp, type Teardown, transportsOf } from './modules.js'

export interface StationOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly logger: Logger
  readonly modules: readonly JobModule[]
  /** Beside those of the modules. */
  readonly jobs?: readonly AnyJob[]
  readonly queues?: readonly string[] | undefined
  readonly concurrency?: number | undefined
}

export interface Station {
  readonly redrive: Redrive
  /** What it works on. */
  readonly jobs: readonly AnyJob[]
  /** Sets the modules up and begins to work. */
  start(): Promise<void>
  /** How many jobs are running. */
  active(): number
  /** Takes no more jobs, and lets those that run finish within the grace time. */
  stop(graceMs?: number): Promise<void>
  /** The same, if it was not said before; undoes what the modules set up, and closes the ledger. */
  close(graceMs?: number, beforeClosing?: () => Promise<void>): Promise<void>
}

const GRACE_MS = 30_000

export async function openStation(options: StationOptions): Promise<Station> {
  const { env, clock, logger, modules, queues, concurrency } = options
  const known = [...new Set([...modules.flatMap(module => module.jobs), ...(options.jobs ?? [])])]
  const jobs = chosen(known, queues)
  const database = databaseOf(env)
  const transports = transportsOf(modules)
  const redrive = await openRedrive({ env, clock, logger, transports, ...(database !== undefined && { database }) })
  let tearDown: Teardown | undefined
  let worker: Worker | undefined
  const stop = async (graceMs = GRACE_MS) => worker?.stop({ graceMs })
  return {
    redrive,
    jobs,
    active: () => worker?.active ?? 0,
    async start() {
      tearDown = await setUp(modules, { redrive, env, log: logOf(logger) })
      if (jobs.length > 0) worker = redrive.work(jobs, concurrency === undefined ? {} : { concurrency })
      else redrive.maintain()
    },
    stop,
    async close(graceMs = GRACE_MS, beforeClosing) {
      await stop(graceMs)
      await tearDown?.()
      await beforeClosing?.()
      await redrive.close({ graceMs })
    },
  }
}

/** Of these queues; before anything is opened, so that a slip costs nothing. */
function chosen(jobs: readonly AnyJob[], queues: readonly string[] | undefined): AnyJob[] {
  const known = [...new Set(jobs.map(({ queue }) => queue))].sort()
  const unknown = queues?.find(queue => !known.includes(queue))
  if (unknown !== undefined) {
    throw usageError(`No job of the modules is of queue ${unknown}; there are ${known.join(', ') || 'none'}`)
  }
  return jobs.filter(({ queue }) => !queues || queues.includes(queue))
}

/** A logger as handlers have it: words first. */
function logOf(logger: Logger): Log {
  const at =
    (level: keyof Logger) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      logger[level](fields, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
