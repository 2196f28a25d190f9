// How a job is retried: data that can be stored, compared and shown, except for a custom backoff's function.
import { type Kind, RETRIABLE } from './failure.js'

export type Backoff =
  | { readonly type: 'exponential'; readonly initialMs: number; readonly factor: number; readonly maxMs?: number }
  | { readonly type: 'linear'; readonly initialMs: number; readonly stepMs: number; readonly maxMs?: number }
  | { readonly type: 'fixed'; readonly delayMs: number }
  | { readonly type: 'immediate' }
  | { readonly type: 'delays'; readonly delaysMs: readonly number[] }
  /** Stored without its function: a process that does not know the job falls back to the default backoff. */
  | { readonly type: 'custom'; readonly delayMs?: CustomDelay }

/** The failed attempt's number (from 1), and the payload as it was enqueued, for waits that depend on the job. */
export type CustomDelay = (attempt: number, payload: unknown) => number

export interface Policy {
  /** How many attempts in all, the first included. */
  readonly attempts: number
  readonly backoff: Backoff
  readonly jitter: boolean
  readonly minMs: number
  readonly maxMs: number
  /** Limit over all attempts, from the start of the first; null: none. */
  readonly totalMs: number | null
  /** After this an attempt is aborted and counts as timed out. */
  readonly timeoutMs: number
  /** Which kinds are tried again. */
  readonly retryKinds: Readonly<Record<Kind, boolean>>
  /** Off: a job that would die ends as cancelled instead. */
  readonly deadLetter: boolean
  /** A job whose worker died this many times is buried as poison. */
  readonly lostLimit: number
}

/** A policy as a user writes it: only what differs. `retryKinds` names the kinds whose treatment changes. */
export type PolicyOverride = Partial<Omit<Policy, 'retryKinds'>> & {
  readonly retryKinds?: Partial<Record<Kind, boolean>>
}

export const DEFAULT_POLICY: Policy = {
  attempts: 3,
  backoff: { type: 'exponential', initialMs: 5_000, factor: 3 },
  jitter: true,
  minMs: 100,
  maxMs: 60_000,
  totalMs: null,
  timeoutMs: 900_000,
  retryKinds: RETRIABLE,
  deadLetter: true,
  lostLimit: 3,
}

/** The total limit of calls awaited in place (`perform`, `retryable`) that name none themselves. */
export const IN_PROCESS_TOTAL_MS = 300_000
