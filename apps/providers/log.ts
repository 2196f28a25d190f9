// The worker's own lines on stderr, beside those of the library and in the same form. What jobs log goes through the library, which
// redacts secrets; here only names and counts are logged.
import { pino } from 'pino'
import type { Log } from 'redrive'

const LEVELS = ['debug', 'info', 'warn', 'error', 'silent']

/** A level that is none is complained of by the library, in its own words. */
export function openLog(level: string): Log {
  const log = pino(
    {
      level: LEVELS.includes(level) ? level : 'info',
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: label => ({ level: label }) },
    },
    pino.destination({ fd: 2, sync: true }),
  )
  return {
    debug: (message, fields = {}) => log.debug(fields, message),
    info: (message, fields = {}) => log.info(fields, message),
    warn: (message, fields = {}) => log.warn(fields, message),
    error: (message, fields = {}) => log.error(fields, message),
  }
}
