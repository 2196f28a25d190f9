// Settings from the environment, for whatever is not said in the code. A bad one stops the start with one line.
import { invalid } from './domain/errors.js'
import type { PolicyOverride } from './domain/policy.js'
import { checkSchemaName, DEFAULT_SCHEMA } from './ledger/schema-name.js'
import { type LogLevel, parseLogLevel } from './telemetry/log.js'

export interface Settings {
  readonly folder: string
  readonly schema: string
  readonly policy: PolicyOverride
  readonly recoveryIntervalMs: number
  readonly logLevel: LogLevel
}

type Environment = Readonly<Record<string, string | undefined>>

export function readSettings(env: Environment): Settings {
  const attempts = number(env, 'MAX_RETRY_ATTEMPTS', 1, 1_000)
  const delaySeconds = number(env, 'RETRY_DELAY_SECONDS', 0, 86_400)
  return {
    folder: text(env, 'REDRIVE_DATA') ?? '.redrive',
    schema: checkSchemaName(text(env, 'REDRIVE_SCHEMA') ?? DEFAULT_SCHEMA),
    policy: {
      ...(attempts !== undefined && { attempts: whole('MAX_RETRY_ATTEMPTS', attempts) }),
      ...(delaySeconds !== undefined && {
        backoff: { type: 'exponential', initialMs: delaySeconds * 1_000, factor: 3 },
        maxMs: Math.max(60_000, delaySeconds * 1_000),
      }),
    },
    recoveryIntervalMs: (number(env, 'RECOVERY_INTERVAL_SECONDS', 1, 86_400) ?? 300) * 1_000,
    logLevel: parseLogLevel(text(env, 'LOG_LEVEL') ?? 'warn'),
  }
}

export interface ServerSettings {
  readonly port: number
  readonly host: string
}

/** Where the API is served, unless the command line says otherwise. */
export function serverSettings(env: Environment): ServerSettings {
  const port = number(env, 'PORT', 0, 65_535)
  return { port: port === undefined ? 3_000 : whole('PORT', port), host: text(env, 'HOST') ?? '127.0.0.1' }
}

/** Which database the environment names; undefined: none, so the embedded one. */
export function databaseOf(env: Environment): string | undefined {
  // A URL that says nothing: the driver takes host, port, user, password and database from the PG* variables.
  return text(env, 'DATABASE_URL') ?? (text(env, 'PGHOST') === undefined ? undefined : 'postgres:///')
}

/** An empty variable counts as not set. */
const text = (env: Environment, name: string): string | undefined => env[name] || undefined

function number(env: Environment, name: string, least: number, most: number): number | undefined {
  const value = text(env, name)
  if (value === undefined) return undefined
  // Digits as a person writes them: `Number` would also read blanks as 0 and 0x10 as 16.
  const parsed = /^[\d.e+-]+$/i.test(value) ? Number(value) : Number.NaN
  if (!(parsed >= least && parsed <= most)) throw invalid(name, value, `a number from ${least} to ${most}`)
  return parsed
}

function whole(name: string, value: number): number {
  if (!Number.isInteger(value)) throw invalid(name, value, 'a whole number')
  return value
}
