// The arithmetic of rate limits: whatever comes when, no window has more starts than it may, and nothing goes unused.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { RateLimitSettings, Slot } from '../../src/domain/rate-limit.js'
import { paceOf, parseRateLimit, takeSlots } from '../../src/policy/rate.js'

const HORIZON_MS = 250

const settings = fc.record({
  limit: fc.integer({ min: 1, max: 1_000 }),
  intervalMs: fc.integer({ min: 100, max: 10_000 }),
  burst: fc.integer({ min: 1, max: 50 }),
})
/** When jobs come, as gaps between them, and how many at once. */
const arrivals = fc.array(
  fc.record({ afterMs: fc.integer({ min: 0, max: 2_000 }), wanted: fc.integer({ min: 1, max: 60 }) }),
  { maxLength: 60 },
)

/** The slots that were given out, in order. */
function play(of: RateLimitSettings, coming: readonly { afterMs: number; wanted: number }[]): Slot[] {
  const pace = paceOf(of)
  let now = 1_700_000_000_000
  let nextAt = now - pace.savedMs
  const given: Slot[] = []
  for (const { afterMs, wanted } of coming) {
    now += afterMs
    const taken = takeSlots({ nextAt, now }, pace, wanted, HORIZON_MS)
    expect(taken.slots.every(({ at, until }) => at >= now && at <= now + HORIZON_MS && until > at)).toBe(true)
    given.push(...taken.slots)
    nextAt = taken.nextAt
  }
  return given
}

/** Starts at the slots, each as soon or as late as it may be. */
const startsOf = (slots: readonly Slot[], late: () => boolean): number[] =>
  slots.map(({ at, until }) => (late() ? until : at)).sort((a, b) => a - b)

/** The most starts that are over what a window may have, over every window that begins and ends with a start. */
function worst(starts: readonly number[], { limit, intervalMs, burst }: RateLimitSettings): number {
  let over = Number.NEGATIVE_INFINITY
  for (let from = 0; from < starts.length; from += 1) {
    for (let to = from; to < starts.length; to += 1) {
      const windowMs = (starts[to] as number) - (starts[from] as number)
      over = Math.max(over, to - from + 1 - (burst + (limit * windowMs) / intervalMs))
    }
  }
  return over
}

describe('takeSlots', () => {
  it('never gives more than burst + limit × window / interval, over any window', () => {
    fc.assert(
      fc.property(settings, arrivals, (of, coming) => {
        const starts = startsOf(play(of, coming), () => false)
        expect(worst(starts, of)).toBeLessThanOrEqual(1e-6)
      }),
    )
  })

  it('still does not when each start is as late as it may be, or not at all, if the burst has room for that', () => {
    fc.assert(
      fc.property(settings, arrivals, fc.infiniteStream(fc.boolean()), (of, coming, late) => {
        fc.pre(paceOf(of).savedMs > 0)
        const starts = startsOf(play(of, coming), () => late.next().value === true)
        expect(worst(starts, of)).toBeLessThanOrEqual(1e-6)
      }),
    )
  })

  it('never lets more than the limit into an interval without a burst, late starts or not', () => {
    const evenly = settings.map(of => ({ ...of, intervalMs: of.intervalMs + 1_000, burst: 1 }))
    fc.assert(
      fc.property(evenly, arrivals, fc.infiniteStream(fc.boolean()), (of, coming, late) => {
        const starts = startsOf(play(of, coming), () => late.next().value === true)
        for (const [index, start] of starts.entries()) {
          const within = starts.slice(index).filter(other => other < start + of.intervalMs - 1e-6)
          expect(within.length).toBeLessThanOrEqual(of.limit)
        }
      }),
    )
  })

  it('gives at least 97% of the limit to those who always have work', () => {
    fc.assert(
      fc.property(settings, of => {
        const step = { afterMs: 50, wanted: 10_000 }
        const given = play(
          of,
          Array.from({ length: 400 }, () => step),
        )
        expect(given.length).toBeGreaterThanOrEqual(Math.floor((of.limit / of.intervalMs) * 400 * 50 * 0.97))
      }),
      { numRuns: 30 },
    )
  })

  it('lets a burst start at once after a quiet time, and no more', () => {
    const of = { limit: 10, intervalMs: 1_000, burst: 5 }
    const { slots } = takeSlots({ nextAt: 0, now: 1_000_000 }, paceOf(of), 100, 0)
    expect(slots.map(({ at }) => at)).toEqual([1_000_000, 1_000_000, 1_000_000, 1_000_000])
  })
})

describe('parseRateLimit', () => {
  it('takes a burst of 1 for granted', () => {
    expect(parseRateLimit({ limit: 10, intervalMs: 1_000 }, 'it')).toEqual({ limit: 10, intervalMs: 1_000, burst: 1 })
  })

  it.each([
    [{ limit: 0, intervalMs: 1_000 }, 'it.limit is 0'],
    [{ limit: 1.5, intervalMs: 1_000 }, 'it.limit is 1.5'],
    [{ limit: 10 }, 'it.intervalMs is undefined'],
    [{ limit: 10, intervalMs: 1 }, 'it.intervalMs is 1'],
    [{ limit: 10, intervalMs: 1_000, burst: 0 }, 'it.burst is 0'],
    [{ limit: 10, intervalMs: 1_000, per: 's' }, 'A key of it is "per"'],
    ['10/s', 'it is "10/s"'],
  ])('refuses %j', (value, message) => {
    expect(() => parseRateLimit(value, 'it')).toThrow(message)
  })
})
