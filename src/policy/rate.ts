// Rate limits as arithmetic. A key has a schedule: slots that lie evenly apart, each for one start. Slots that nobody
// took are saved for a while, for a burst. A start in a slot of the past is due at once; a slot of the future is waited
// for. (GCRA by another name: the next slot is its theoretical arrival time less the tolerance for bursts.)
import { invalid } from '../domain/errors.js'
import type { Pace, RateLimitSettings, Slot } from '../domain/rate-limit.js'

/**
 * Slots lie farther apart than the limit asks for by this share, because a start is never exactly at its slot: if it is
 * late by no more than this share of an interval, no interval has more starts than the limit allows.
 */
const MARGIN = 0.02
const LEAST_LATE_MS = 2
const MOST_LATE_MS = 250

const BOUNDS = { limit: [1, 1_000_000], intervalMs: [100, 30 * 86_400_000], burst: [1, 1_000_000] } as const

/**
 * A burst is room for starts that are late, whether because nobody came for their slot or because who had it was held up:
 * if none is later than the burst less one is long, no window of any length has more starts than it may. Somewhat less is
 * allowed, for delays that nobody can see, and less still is saved, so that a saved slot can be reached in time.
 */
export function paceOf({ limit, intervalMs, burst }: RateLimitSettings): Pace {
  const spacingMs = (intervalMs / limit) * (1 + MARGIN)
  const reachMs = Math.min(MOST_LATE_MS, Math.max(LEAST_LATE_MS, intervalMs * MARGIN))
  const burstMs = (burst - 1) * spacingMs
  return { spacingMs, savedMs: Math.max(0, burstMs - reachMs), lateMs: Math.max(burstMs - reachMs / 2, reachMs) }
}

export interface Taken {
  readonly slots: readonly Slot[]
  /** The next slot that nobody has. */
  readonly nextAt: number
}

/** Takes up to `wanted` slots that lie no farther ahead than `horizonMs`. The ledger does the same under a lock. */
export function takeSlots(
  { nextAt, now }: { nextAt: number; now: number },
  pace: Pace,
  wanted: number,
  horizonMs: number,
): Taken {
  const { spacingMs, savedMs } = pace
  const firstAt = Math.max(nextAt, now - savedMs)
  const room = Math.floor((now + horizonMs - firstAt) / spacingMs) + 1
  const given = Math.max(0, Math.min(room, wanted))
  return { slots: slotsFrom({ ...pace, firstAt, now, given }), nextAt: firstAt + given * spacingMs }
}

export interface Given {
  readonly now: number
  readonly firstAt: number
  readonly spacingMs: number
  readonly lateMs: number
  readonly given: number
}

/** The slots that were given, in order. */
export const slotsFrom = ({ now, firstAt, spacingMs, lateMs, given }: Given): Slot[] =>
  Array.from({ length: given }, (_, index) => {
    const slot = firstAt + index * spacingMs
    return { at: Math.max(now, slot), until: slot + lateMs }
  })

/** Checks settings as a user or an operator wrote them; `where` names them in the error. */
export function parseRateLimit(value: unknown, where: string): RateLimitSettings {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(where, value, 'an object with limit, intervalMs and burst')
  }
  const given = { burst: 1, ...dropUndefined(value) } as Record<string, unknown>
  const unknown = Object.keys(given).find(key => !Object.hasOwn(BOUNDS, key))
  if (unknown !== undefined) throw invalid(`A key of ${where}`, unknown, `one of ${Object.keys(BOUNDS).join(', ')}`)
  for (const [key, [least, most]] of Object.entries(BOUNDS)) {
    const setting = given[key]
    if (!(Number.isInteger(setting) && Number(setting) >= least && Number(setting) <= most)) {
      throw invalid(`${where}.${key}`, setting, `a whole number from ${least} to ${most}`)
    }
  }
  return { limit: given.limit, intervalMs: given.intervalMs, burst: given.burst } as RateLimitSettings
}

const dropUndefined = (value: object): object =>
  Object.fromEntries(Object.entries(value).filter(([, setting]) => setting !== undefined))
