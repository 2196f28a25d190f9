// How an attempt ended. Facts only; what follows from them is a Decision.
import type { Failure } from './failure.js'
import type { Json } from './json.js'

export const OUTCOMES = ['succeeded', 'failed', 'snoozed', 'cancelled', 'timed_out', 'interrupted', 'lost'] as const

export type OutcomeType = (typeof OUTCOMES)[number]

/** Its rate limit has no slot for it. */
export interface Hold {
  /** The limit and key, as one text. */
  readonly by: string
  /** About when its turn is. */
  readonly delayMs: number
  readonly reason: string
}

export type Outcome =
  /** `size`: how long the result is as text, where there is one. */
  | { readonly type: 'succeeded'; readonly result: Json; readonly size?: number }
  /** `final`: the handler itself said that no retry can help (`bury`). */
  | { readonly type: 'failed'; readonly failure: Failure; readonly final?: boolean }
  | { readonly type: 'snoozed'; readonly delayMs: number }
  | { readonly type: 'cancelled'; readonly reason: string }
  | { readonly type: 'timed_out'; readonly failure: Failure }
  /** Stopped by us, not by itself: at shutdown, or because the lease was lost; or never started. */
  | {
      readonly type: 'interrupted'
      readonly started: boolean
      readonly leaseLost?: boolean
      /** It may not start now, and why; only with `started: false`. */
      readonly hold?: Hold
    }
  | { readonly type: 'lost'; readonly failure: Failure }
