// The ends a handler may return instead of a result: not errors, but said on purpose.
import { invalid } from '../domain/errors.js'
import { LIMITS } from '../domain/limits.js'

const mark = Symbol.for('redrive.verdict')

export type Verdict = { readonly [mark]: true } & (
  | { readonly type: 'snooze'; readonly delayMs: number }
  | { readonly type: 'cancel'; readonly reason: string }
  | { readonly type: 'bury'; readonly reason: string }
)

/** Run again after so long; spends no attempt. */
export function snooze(delayMs: number): Verdict {
  if (!(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= LIMITS.delayMs)) {
    throw invalid('A snooze', delayMs, `milliseconds from 0 to ${LIMITS.delayMs}`)
  }
  return { [mark]: true, type: 'snooze', delayMs }
}

/** The work is not needed any more: end without a result and without a dead letter. */
export const cancel = (reason = 'cancelled by its handler'): Verdict => ({ [mark]: true, type: 'cancel', reason })

/** No retry can help: make it a dead letter now. */
export const bury = (reason = 'buried by its handler'): Verdict => ({ [mark]: true, type: 'bury', reason })

export const isVerdict = (value: unknown): value is Verdict =>
  typeof value === 'object' && value !== null && (value as { [mark]?: unknown })[mark] === true
