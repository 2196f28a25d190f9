// What happens next to a job, with the reason in words. Made only by policy/decide.ts.
import type { Json } from './json.js'

export const DECISIONS = ['complete', 'retry', 'hold', 'bury', 'cancel', 'return'] as const

export type DecisionType = (typeof DECISIONS)[number]

/** Which counter a job that goes back without spending an attempt adds to; `none` for one never started. */
export type ReturnCause = 'snooze' | 'interruption' | 'none'

export type Decision =
  | { readonly type: 'complete'; readonly result: Json; readonly reason: string }
  | { readonly type: 'retry'; readonly delayMs: number; readonly reason: string }
  /**
   * Set aside without spending an attempt; looked at again after `delayMs`. `heldBy`: what lets it go before that, if
   * something does. `spent`: its attempt ran and counts; only the next one is held.
   */
  | {
      readonly type: 'hold'
      readonly delayMs: number
      readonly reason: string
      readonly heldBy?: string
      readonly spent?: boolean
    }
  | { readonly type: 'bury'; readonly reason: string }
  | { readonly type: 'cancel'; readonly reason: string }
  /** Given back without spending an attempt. */
  | {
      readonly type: 'return'
      readonly cause: ReturnCause
      readonly delayMs: number
      readonly reason: string
    }
