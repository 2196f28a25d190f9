// How long to wait before the next attempt: backoff → jitter within the policy's bounds, or what the other side
// asked for.
//
// Jitter is ±25 % around the backoff's delay, so that on average a job waits what was configured. At a bound the
// window is narrowed, not the result clamped: a thousand jobs at their longest delay spread over 75–100 % of it
// instead of all coming back in the same millisecond (pitfall 6).
import type { Random } from '../domain/clock.js'
import { LIMITS } from '../domain/limits.js'
import { type Backoff, type CustomDelay, DEFAULT_POLICY, type Policy } from '../domain/policy.js'

const JITTER = 0.25
/** Nobody is made to wait longer than this by a header. */
const LONGEST_RETRY_AFTER_MS = 24 * 3_600_000
/** What is added to a time asked for: up to a tenth of it, never more than half a minute. */
const RETRY_AFTER_JITTER = 0.1
const RETRY_AFTER_JITTER_MS = 30_000

const usable = (delayMs: unknown): delayMs is number =>
  typeof delayMs === 'number' && Number.isFinite(delayMs) && delayMs >= 0

/**
 * The delay after the `attempt`-th failure (from 1), before jitter and the policy's bounds. Always finite.
 * `payloadText`: of the job, for a custom function that looks at it.
 */
export function rawDelayMs(backoff: Backoff, attempt: number, payloadText?: string): number {
  const nth = attempt >= 1 ? Math.floor(attempt) : 1
  switch (backoff.type) {
    case 'exponential':
      // 0 × ∞ is not a number: a start at 0 stays there.
      return backoff.initialMs === 0 ? 0 : within(backoff.initialMs * backoff.factor ** (nth - 1), backoff.maxMs)
    case 'linear':
      return within(backoff.initialMs + backoff.stepMs * (nth - 1), backoff.maxMs)
    case 'fixed':
      return within(backoff.delayMs)
    case 'immediate':
      return 0
    case 'delays':
      return within(backoff.delaysMs[Math.min(nth, backoff.delaysMs.length) - 1] ?? 0)
    case 'custom':
      return customDelayMs(backoff.delayMs, nth, payloadText)
  }
}

const within = (delayMs: number, maxMs: number = LIMITS.delayMs): number => Math.min(delayMs, maxMs, LIMITS.delayMs)

/** A function that is missing, throws, or gives no usable number must not stop a retry: the default backoff steps in. */
function customDelayMs(delayOf: CustomDelay | undefined, attempt: number, payloadText: string | undefined): number {
  try {
    const delayMs = delayOf?.(attempt, payloadText === undefined ? undefined : JSON.parse(payloadText))
    if (usable(delayMs)) return within(delayMs)
  } catch {
    // Falls through to the default.
  }
  return rawDelayMs(DEFAULT_POLICY.backoff, attempt)
}

/**
 * The longest delay a backoff names itself; undefined if it names none. For whoever merges policies: a
 * `fixed({ delayMs: 300_000 })` should not be cut by a 60 s maximum that nobody chose.
 */
export function statedMaxMs(backoff: Backoff): number | undefined {
  switch (backoff.type) {
    case 'exponential':
    case 'linear':
      return backoff.maxMs ?? backoff.initialMs
    case 'fixed':
      return backoff.delayMs
    case 'delays':
      return backoff.delaysMs.length === 0 ? undefined : Math.max(...backoff.delaysMs)
    case 'immediate':
    case 'custom':
      return undefined
  }
}

export interface RetryDelayInput {
  readonly policy: Pick<Policy, 'backoff' | 'jitter' | 'minMs' | 'maxMs'>
  /** The attempt that just failed, from 1. */
  readonly attempt: number
  readonly retryAfterMs?: number | undefined
  /** Of the job, for a custom backoff. */
  readonly payloadText?: string | undefined
  readonly random: Random
}

/** The wait before the next attempt, in whole milliseconds. */
export function retryDelayMs({ policy, attempt, retryAfterMs, payloadText, random }: RetryDelayInput): number {
  // An ask of 0 (often a reset time already past by our clock) names no time: the backoff stands.
  if (usable(retryAfterMs) && retryAfterMs > 0) return askedDelayMs(retryAfterMs, policy.jitter, random)
  const raw = rawDelayMs(policy.backoff, attempt, payloadText)
  // A plain 0 is a wish (immediate, `delays([0, …])`), not a computed delay: `minMs` does not apply to it.
  if (raw === 0) return 0
  const { minMs } = policy
  const maxMs = Math.max(minMs, policy.maxMs)
  const delayMs = Math.min(Math.max(raw, minMs), maxMs)
  const spread = policy.jitter ? JITTER : 0
  const earliest = Math.max(delayMs * (1 - spread), minMs)
  const latest = Math.min(delayMs * (1 + spread), maxMs)
  return Math.min(Math.round(earliest + random() * (latest - earliest)), maxMs)
}

/** Never earlier than asked, and never all at the same moment. May exceed the policy's maximum, not a day. */
function askedDelayMs(askedMs: number, jitter: boolean, random: Random): number {
  const extraMs = jitter ? random() * Math.min(askedMs * RETRY_AFTER_JITTER, RETRY_AFTER_JITTER_MS) : 0
  return Math.min(Math.ceil(askedMs + extraMs), LONGEST_RETRY_AFTER_MS)
}
