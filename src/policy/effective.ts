// Which policy holds for a job: the defaults, then what the code says, then what the enqueuer asked for, then what a
// person set on the queue at run time. Later ones win, setting by setting.
import { invalid } from '../domain/errors.js'
import { isKind, KINDS, type Kind } from '../domain/failure.js'
import type { Json } from '../domain/json.js'
import { LIMITS } from '../domain/limits.js'
import { DEFAULT_POLICY, type Policy, type PolicyOverride } from '../domain/policy.js'
import { parseBackoff, statedMaxMs } from './backoff.js'

const MOST_ATTEMPTS = 1_000

const overlay = (policy: Policy, override: PolicyOverride): Policy => ({
  ...policy,
  // A backoff that names its own longest delay is not cut by a maximum that nobody chose.
  ...(override.backoff && { maxMs: Math.max(statedMaxMs(override.backoff) ?? 0, policy.maxMs) }),
  ...override,
  retryKinds: { ...policy.retryKinds, ...override.retryKinds },
})

/** Later overrides win. */
export const effectivePolicy = (...overrides: readonly (PolicyOverride | undefined)[]): Policy =>
  overrides.reduce<Policy>((policy, override) => (override ? overlay(policy, override) : policy), DEFAULT_POLICY)

const whole = (what: string, value: unknown, least: number, most: number): number => {
  if (!(Number.isInteger(value) && Number(value) >= least && Number(value) <= most)) {
    throw invalid(what, value, `a whole number from ${least} to ${most}`)
  }
  return value as number
}

const yesNo = (what: string, value: unknown): boolean => {
  if (typeof value !== 'boolean') throw invalid(what, value, 'true or false')
  return value
}

const retryKinds = (what: string, value: unknown): Partial<Record<Kind, boolean>> => {
  if (typeof value !== 'object' || value === null) throw invalid(what, value, 'an object of kinds')
  for (const [kind, retried] of Object.entries(value)) {
    if (!isKind(kind)) throw invalid(`a key of ${what}`, kind, `one of ${KINDS.join(', ')}`)
    yesNo(`${what}.${kind}`, retried)
  }
  return value
}

const CHECKS: { readonly [Key in keyof Policy]: (what: string, value: unknown) => unknown } = {
  attempts: (what, value) => whole(what, value, 1, MOST_ATTEMPTS),
  backoff: (_what, value) => {
    const backoff = parseBackoff(value)
    return backoff.type === 'custom' ? value : backoff
  },
  jitter: yesNo,
  minMs: (what, value) => whole(what, value, 0, LIMITS.delayMs),
  maxMs: (what, value) => whole(what, value, 0, LIMITS.delayMs),
  totalMs: (what, value) => (value === null ? null : whole(what, value, 1, LIMITS.delayMs)),
  timeoutMs: (what, value) => whole(what, value, 1, 2 ** 31 - 1),
  retryKinds,
  deadLetter: yesNo,
  lostLimit: (what, value) => whole(what, value, 1, 100),
}

/** Checks a policy as a user wrote it or as it was stored; `where` names it in the error. */
export function parsePolicy(value: unknown, where: string): PolicyOverride {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(where, value, `an object with any of ${Object.keys(CHECKS).join(', ')}`)
  }
  const policy: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries(value)) {
    if (setting === undefined) continue
    if (!Object.hasOwn(CHECKS, key)) {
      throw invalid(`A key of ${where}`, key, `one of ${Object.keys(CHECKS).join(', ')}`)
    }
    policy[key] = CHECKS[key as keyof Policy](`${where}.${key}`, setting)
  }
  return policy as PolicyOverride
}

/** A policy as it is stored: everything but functions. */
export const policyAsJson = (policy: PolicyOverride): Json => JSON.parse(JSON.stringify(policy)) as Json
