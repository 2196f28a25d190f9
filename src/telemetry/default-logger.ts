// The logger of whoever brings none: pino, as JSON lines on stderr, or as short lines where a person reads them. Secrets are
// redacted by the same rules as over HTTP.
import { type DestinationStream, pino } from 'pino'
import type { Clock } from '../domain/clock.js'
import type { Json } from '../domain/json.js'
import { redactJson, redactText } from '../policy/redact.js'
import type { Logger, LogLevel } from './log.js'
import { shortLine } from './short-line.js'

/** Where lines go; a terminal gets short ones. */
export interface LogStream {
  readonly isTTY?: boolean | undefined
  write(text: string): unknown
}

export function defaultLogger(level: LogLevel, clock: Clock, stream: LogStream = process.stderr): Logger {
  const to: DestinationStream = stream.isTTY
    ? { write: line => void stream.write(shortLine(line)) }
    : { write: line => void stream.write(line) }
  const log = pino(
    {
      level,
      base: null,
      timestamp: () => `,"time":"${new Date(clock.now()).toISOString()}"`,
      formatters: { level: label => ({ level: label }), log: redactedFields },
    },
    to,
  )
  const at = (name: keyof Logger) => (fields: Record<string, unknown>, message: string) =>
    // Looked at only if it will be written.
    void (log.isLevelEnabled(name) && log[name](fields, redactText(message)))
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** A log line never fails its writer: what JSON cannot say is said as text. */
function redactedFields(fields: Record<string, unknown>): Record<string, unknown> {
  try {
    return redactJson(JSON.parse(JSON.stringify(fields, sayable)) as Json) as Record<string, unknown>
  } catch {
    return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, redactText(String(value))]))
  }
}

function sayable(_name: string, value: unknown): unknown {
  if (typeof value === 'bigint') return String(value)
  if (!(value instanceof Error)) return value
  const { name, message, stack } = value
  return { type: name, message, stack }
}
