// A job's rate limit: what the user writes in `defineJob`, and what the workers make of it.
import { invalid } from '../domain/errors.js'
import type { JobIdentity } from '../domain/job.js'
import { LIMITS } from '../domain/limits.js'
import type { Pace, RateLimitSettings } from '../domain/rate-limit.js'
import { paceOf, parseRateLimit } from '../policy/rate.js'

export type RateKey<Payload> =
  | 'tenant'
  | 'user'
  | 'project'
  /** Undefined: this job is not limited. */
  | ((payload: Payload, job: JobIdentity) => string | undefined)

/** As a user writes it: at most `limit` starts in `intervalMs`, over all workers of the fleet. */
export interface RateLimit<Payload = unknown> extends Omit<RateLimitSettings, 'burst'> {
  /** How operators know it, and what other jobs share it by; the job's own name if left out. */
  readonly name?: string
  /** Each key has the limit for itself. Left out: one limit for all. */
  readonly key?: RateKey<Payload>
  readonly burst?: number
}

export interface RateRule {
  readonly name: string
  // biome-ignore lint/suspicious/noExplicitAny: rules of different payloads are kept together
  readonly key: RateKey<any> | undefined
  readonly settings: RateLimitSettings
  readonly pace: Pace
}

const NAMED = ['tenant', 'user', 'project'] as const

/** `name`: checked by the caller. */
export function parseRateRule<Payload>(name: string, limit: RateLimit<Payload>, where: string): RateRule {
  const { name: _, key, ...settings } = limit
  if (!(key === undefined || typeof key === 'function' || NAMED.includes(key))) {
    throw invalid(`${where}.key`, key, `a function or one of ${NAMED.join(', ')}`)
  }
  const parsed = parseRateLimit(settings, where)
  return { name, key, settings: parsed, pace: paceOf(parsed) }
}

/** The key of a job; throws if the user's function does, or gives what is no key. */
export function rateKey({ name, key }: RateRule, job: JobIdentity, payload?: unknown): string | undefined {
  if (key === undefined) return ''
  if (typeof key !== 'function') return job[key]
  const chosen: unknown = key(payload, job)
  if (chosen === undefined) return undefined
  const fits = typeof chosen === 'string' && chosen.length >= 1 && chosen.length <= LIMITS.keyChars
  if (!fits || chosen.includes('\0') || !chosen.isWellFormed()) {
    throw invalid(`The key of rate limit ${name}`, chosen, `text of 1 to ${LIMITS.keyChars} characters, or undefined`)
  }
  return chosen
}

/** Jobs that share a limit must say the same of it: there is one schedule. */
export function checkShared(rules: readonly RateRule[]): void {
  const byName = new Map<string, RateRule>()
  for (const rule of rules) {
    const { settings } = byName.get(rule.name) ?? rule
    byName.set(rule.name, rule)
    const same = (['limit', 'intervalMs', 'burst'] as const).every(key => settings[key] === rule.settings[key])
    if (!same) throw invalid(`Rate limit ${rule.name}`, 'two different ones', 'the same in all jobs that share it')
  }
}

/** In words, for people. */
export const inWords = ({ limit, intervalMs }: RateLimitSettings): string => {
  const [count, unit] =
    intervalMs % 3_600_000 === 0
      ? [intervalMs / 3_600_000, 'h']
      : intervalMs % 60_000 === 0
        ? [intervalMs / 60_000, 'min']
        : intervalMs % 1_000 === 0
          ? [intervalMs / 1_000, 's']
          : [intervalMs, 'ms']
  return `${limit} per ${count === 1 ? '' : `${count} `}${unit}`
}
