// Logs, one JSON line each, on stderr; or to a logger of the user's own. A job's lines carry its ids, never its payload.
import type { Clock } from '../domain/clock.js'
import { invalid } from '../domain/errors.js'
import type { Job } from '../domain/job.js'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

export interface Logger {
  debug(fields: Record<string, unknown>, message: string): void
  info(fields: Record<string, unknown>, message: string): void
  warn(fields: Record<string, unknown>, message: string): void
  error(fields: Record<string, unknown>, message: string): void
}

export function parseLogLevel(value: string): LogLevel {
  if (!LOG_LEVELS.includes(value as LogLevel)) throw invalid('LOG_LEVEL', value, `one of ${LOG_LEVELS.join(', ')}`)
  return value as LogLevel
}

export function stderrLogger(level: LogLevel, clock: Clock): Logger {
  const least = LOG_LEVELS.indexOf(level)
  const at = (name: Exclude<LogLevel, 'silent'>) => (fields: Record<string, unknown>, message: string) => {
    if (LOG_LEVELS.indexOf(name) < least) return
    const time = new Date(clock.now()).toISOString()
    process.stderr.write(`${line({ time, level: name, msg: message, ...fields })}\n`)
  }
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** A log line never fails its writer: what JSON cannot say is said as text. */
function line(fields: Record<string, unknown>): string {
  try {
    return JSON.stringify(fields, (_key, value) => (typeof value === 'bigint' ? String(value) : value))
  } catch {
    return JSON.stringify(Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, String(value)])))
  }
}

/** A handler's own log: the same logger, with the job's ids on every line. */
export function jobLog(logger: Logger) {
  return (job: Job) => {
    const ids = { jobId: job.id, job: job.name, queue: job.queue, attempt: job.attempt }
    const at = (name: keyof Logger) => (message: string, fields?: Record<string, unknown>) =>
      logger[name]({ ...fields, ...ids }, message)
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }
}
