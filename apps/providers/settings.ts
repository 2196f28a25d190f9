// Settings of the provider worker, from the environment. A bad one stops the start with one line. MAX_RETRY_ATTEMPTS is
// Redrive's own: it is read there.
import { bad, checkOperationName } from './names.js'
import { DEFAULT_DELAYS, type RetryDelays } from './retry-delays.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface Settings {
  readonly retryDelays: RetryDelays
  readonly attemptsByOperation: Readonly<Record<string, number>>
  readonly timeoutMs: number
  readonly concurrency: number
  /** Off: no triage rules are made at the start. */
  readonly triage: boolean
  /** Modules that register providers. */
  readonly modules: readonly string[]
  /** Undefined: jobs live in the ledger. */
  readonly rabbitmq: { readonly url: string; readonly prefix: string; readonly mirror: string } | undefined
}

const LONGEST_SECONDS = 86_400
const MIRROR = 'provider.jobs.dlq'

export function readSettings(env: Environment): Settings {
  const defaultSeconds = number('RETRY_DELAY_SECONDS', env.RETRY_DELAY_SECONDS, 0, LONGEST_SECONDS)
  const delaySeconds = byOperation(env, 'PROVIDER_RETRY_DELAYS', 0, LONGEST_SECONDS)
  const prefix = env.PROVIDER_AMQP_PREFIX || ''
  return {
    retryDelays: {
      defaultMs: defaultSeconds === undefined ? DEFAULT_DELAYS.defaultMs : defaultSeconds * 1_000,
      byOperationMs: { ...DEFAULT_DELAYS.byOperationMs, ...mapped(delaySeconds, seconds => seconds * 1_000) },
    },
    attemptsByOperation: mapped(byOperation(env, 'PROVIDER_RETRY_ATTEMPTS', 1, 1_000), (attempts, name) =>
      whole(`PROVIDER_RETRY_ATTEMPTS of ${name}`, attempts),
    ),
    timeoutMs: Math.round(
      (number('PROVIDER_TIMEOUT_SECONDS', env.PROVIDER_TIMEOUT_SECONDS, 0.1, 86_400) ?? 300) * 1_000,
    ),
    concurrency: whole(
      'PROVIDER_CONCURRENCY',
      number('PROVIDER_CONCURRENCY', env.PROVIDER_CONCURRENCY, 1, 10_000) ?? 10,
    ),
    triage: onOff('PROVIDER_TRIAGE', env.PROVIDER_TRIAGE) ?? true,
    modules: (env.PROVIDER_MODULES ?? '').split(',').flatMap(path => path.trim() || []),
    rabbitmq: env.AMQP_URL ? { url: env.AMQP_URL, prefix, mirror: prefix + MIRROR } : undefined,
  }
}

/** `create=10,get=2` */
function byOperation(env: Environment, variable: string, least: number, most: number): Record<string, number> {
  const pairs = (env[variable] ?? '').split(',').filter(pair => pair.trim() !== '')
  return Object.fromEntries(
    pairs.map(pair => {
      const [name = '', value, ...rest] = pair.split('=').map(part => part.trim())
      if (value === undefined || rest.length > 0) throw bad(variable, pair, 'a list such as create=10,get=2')
      checkOperationName(name)
      const parsed = number(`${variable} of ${name}`, value, least, most)
      if (parsed === undefined) throw bad(variable, pair, 'a list such as create=10,get=2')
      return [name, parsed]
    }),
  )
}

const mapped = (from: Record<string, number>, change: (value: number, name: string) => number) =>
  Object.fromEntries(Object.entries(from).map(([name, value]) => [name, change(value, name)]))

/** An empty variable counts as not set. */
function number(what: string, value: string | undefined, least: number, most: number): number | undefined {
  if (!value) return undefined
  const parsed = /^\d{1,9}(?:\.\d{1,6})?$/.test(value) ? Number(value) : Number.NaN
  if (!(parsed >= least && parsed <= most)) throw bad(what, value, `a number from ${least} to ${most}`)
  return parsed
}

function whole(what: string, value: number): number {
  if (!Number.isInteger(value)) throw bad(what, String(value), 'a whole number')
  return value
}

function onOff(what: string, value: string | undefined): boolean | undefined {
  if (!value) return undefined
  if (value !== 'on' && value !== 'off') throw bad(what, value, 'on or off')
  return value === 'on'
}
