// Logs: the four methods we need of a logger, and what a job's lines carry: its ids, never its payload.
import { invalid } from '../domain/errors.js'
import type { Job } from '../domain/job.js'

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** As pino has them; yours may be anything that does. */
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

/** A handler's own log: the same logger, with the job's ids on every line. */
export function jobLog(logger: Logger) {
  return (job: Job, worker?: string) => {
    const { id, name, queue, attempt } = job
    const ids = { job: id, attempt, queue, name, ...(worker !== undefined && { worker }) }
    const at = (level: keyof Logger) => (message: string, fields?: Record<string, unknown>) =>
      logger[level]({ ...fields, ...ids }, message)
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }
}
