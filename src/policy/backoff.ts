// The backoffs a user can write, checked where they are written: a mistake shows at start, not at the first failure.
import { invalid } from '../domain/errors.js'
import { LIMITS } from '../domain/limits.js'
import type { Backoff, CustomDelay } from '../domain/policy.js'
import { attempt, isObject, prop } from './read.js'

export { type RetryDelayInput, rawDelayMs, retryDelayMs, statedMaxMs } from './delay.js'

const DEFAULT_MS = 5_000
const DEFAULT_FACTOR = 3
const LARGEST_FACTOR = 1_000
const LONGEST_LIST = 1_000

type Of<Type extends Backoff['type']> = Extract<Backoff, { type: Type }>

/** 1 s, 3 s, 9 s, 27 s… for `{ initialMs: 1000, factor: 3 }`. */
export function exponential(options: { initialMs?: number; factor?: number; maxMs?: number } = {}): Of<'exponential'> {
  const { initialMs = DEFAULT_MS, factor = DEFAULT_FACTOR, maxMs } = options
  checkMs('exponential backoff: initialMs', initialMs)
  if (!(typeof factor === 'number' && factor >= 1 && factor <= LARGEST_FACTOR))
    throw invalid('exponential backoff: factor', factor, `a number from 1 to ${LARGEST_FACTOR}`)
  return { type: 'exponential', initialMs, factor, ...checkedMax('exponential', initialMs, maxMs) }
}

/** 1 s, 2.5 s, 4 s, 5.5 s… for `{ initialMs: 1000, stepMs: 1500 }`. The step is as long as the start unless given. */
export function linear(options: { initialMs?: number; stepMs?: number; maxMs?: number } = {}): Of<'linear'> {
  const { initialMs = DEFAULT_MS, stepMs = initialMs, maxMs } = options
  checkMs('linear backoff: initialMs', initialMs)
  checkMs('linear backoff: stepMs', stepMs)
  return { type: 'linear', initialMs, stepMs, ...checkedMax('linear', initialMs, maxMs) }
}

/** The same delay every time. */
export function fixed(options: { delayMs?: number } = {}): Of<'fixed'> {
  const { delayMs = DEFAULT_MS } = options
  checkMs('fixed backoff: delayMs', delayMs)
  return { type: 'fixed', delayMs }
}

/** No delay at all. */
export const immediate = (): Of<'immediate'> => ({ type: 'immediate' })

/** One delay for each failure; the last one repeats. */
export function delays(delaysMs: readonly number[]): Of<'delays'> {
  if (!Array.isArray(delaysMs) || delaysMs.length === 0 || delaysMs.length > LONGEST_LIST)
    throw invalid('delays backoff', shown(delaysMs), `a list of 1 to ${LONGEST_LIST} delays in milliseconds`)
  delaysMs.forEach((delayMs, index) => {
    checkMs(`delays backoff: delay ${index + 1}`, delayMs)
  })
  return { type: 'delays', delaysMs: [...delaysMs] }
}

/** The user's own function of the attempt that failed (from 1) and the payload. If it fails, the default backoff steps in. */
export function custom(delayMs: CustomDelay): Of<'custom'> {
  if (typeof delayMs !== 'function')
    throw invalid('custom backoff', shown(delayMs), 'a function (attempt, payload) => milliseconds')
  return { type: 'custom', delayMs }
}

type Options = Readonly<Record<string, never>>

/** Stored JSON goes through the same constructors, so that it is checked by the same rules. */
const PARSERS: Readonly<Record<Backoff['type'], (json: object) => Backoff>> = {
  exponential: json => exponential(json as Options),
  linear: json => linear(json as Options),
  fixed: json => fixed(json as Options),
  immediate,
  delays: json => delays(prop(json, 'delaysMs') as readonly number[]),
  custom: () => ({ type: 'custom' }),
}

/** A backoff that was stored as JSON. */
export function parseBackoff(json: unknown): Backoff {
  if (!isObject(json)) throw invalid('backoff', shown(json), 'an object with a `type`')
  const type = prop(json, 'type')
  if (typeof type !== 'string' || !Object.hasOwn(PARSERS, type))
    throw invalid('backoff type', shown(type), `one of ${Object.keys(PARSERS).join(', ')}`)
  return PARSERS[type as Backoff['type']](json)
}

function checkMs(what: string, ms: unknown): void {
  if (!(typeof ms === 'number' && ms >= 0 && ms <= LIMITS.delayMs))
    throw invalid(what, shown(ms), `a number of milliseconds from 0 to ${LIMITS.delayMs}`)
}

function checkedMax(type: string, initialMs: number, maxMs: number | undefined): { maxMs?: number } {
  if (maxMs === undefined || maxMs === null) return {}
  checkMs(`${type} backoff: maxMs`, maxMs)
  if (maxMs < initialMs) throw invalid(`${type} backoff: maxMs`, maxMs, `at least initialMs (${initialMs})`)
  return { maxMs }
}

/** Something that can always be printed: an object without a prototype cannot. */
const shown = (value: unknown): unknown =>
  isObject(value) ? (attempt(() => JSON.stringify(value)?.slice(0, 100)) ?? typeof value) : value
