// The wait before the next attempt: within its bounds whatever chance says, and never earlier than asked.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Backoff, DEFAULT_POLICY, type Policy } from '../../src/domain/policy.js'
import { delays, exponential, fixed, immediate, linear, rawDelayMs, retryDelayMs } from '../../src/policy/backoff.js'

const DAY_MS = 24 * 3_600_000
const policy = (override: Partial<Policy>): Policy => ({ ...DEFAULT_POLICY, ...override })
const earliest = () => 0
const middle = () => 0.5
const latest = () => 1 - Number.EPSILON

const anyBackoff: fc.Arbitrary<Backoff> = fc.oneof(
  fc.record({ initialMs: fc.nat(1e7), factor: fc.double({ min: 1, max: 1000, noNaN: true }) }).map(exponential),
  fc.record({ initialMs: fc.nat(1e7), stepMs: fc.nat(1e7) }).map(linear),
  fc.record({ delayMs: fc.nat(1e7) }).map(fixed),
  fc.array(fc.nat(1e7), { minLength: 1, maxLength: 5 }).map(delays),
  fc.constant(immediate()),
)
const anyRandom = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true })

describe('jitter', () => {
  const tenSeconds = policy({ backoff: fixed({ delayMs: 10_000 }) })

  it('spreads by a quarter either way, around the delay that was configured', () => {
    expect(retryDelayMs({ policy: tenSeconds, attempt: 1, random: earliest })).toBe(7500)
    expect(retryDelayMs({ policy: tenSeconds, attempt: 1, random: middle })).toBe(10_000)
    expect(retryDelayMs({ policy: tenSeconds, attempt: 1, random: latest })).toBe(12_500)
  })

  it('still spreads at the longest delay, below it', () => {
    const long = policy({ backoff: exponential(), maxMs: 60_000 })
    expect(retryDelayMs({ policy: long, attempt: 9, random: earliest })).toBe(45_000)
    expect(retryDelayMs({ policy: long, attempt: 9, random: latest })).toBe(60_000)
  })

  it('is off when the policy says so', () => {
    const exact = policy({ backoff: exponential({ initialMs: 1000 }), jitter: false })
    const waits = [1, 2, 3, 4, 5].map(attempt => retryDelayMs({ policy: exact, attempt, random: earliest }))
    expect(waits).toEqual([1000, 3000, 9000, 27_000, 60_000])
  })
})

describe('the bounds', () => {
  it('raise a short delay to the minimum, but leave a plain 0 alone', () => {
    const wait = (backoff: Backoff) => retryDelayMs({ policy: policy({ backoff }), attempt: 1, random: earliest })
    expect(wait(fixed({ delayMs: 1 }))).toBe(100)
    expect(wait(immediate())).toBe(0)
    expect(wait(delays([0, 5000]))).toBe(0)
  })

  it('hold for every backoff, attempt and chance', () => {
    fc.assert(
      fc.property(
        anyBackoff,
        fc.integer({ min: 1, max: 1e6 }),
        anyRandom,
        fc.nat(1e4),
        fc.nat(1e6),
        fc.boolean(),
        (backoff, attempt, chance, minMs, extra, jitter) => {
          const maxMs = minMs + extra
          const ms = retryDelayMs({ policy: policy({ backoff, minMs, maxMs, jitter }), attempt, random: () => chance })
          expect(Number.isInteger(ms)).toBe(true)
          if (rawDelayMs(backoff, attempt) === 0) expect(ms).toBe(0)
          else expect(ms >= minMs && ms <= maxMs).toBe(true)
        },
      ),
    )
  })
})

describe('Retry-After', () => {
  const asked = (retryAfterMs: number, random = earliest) =>
    retryDelayMs({ policy: DEFAULT_POLICY, attempt: 1, retryAfterMs, random })

  it('beats the backoff, also where that is longer or at its maximum', () => {
    expect(asked(200)).toBe(200)
    expect(asked(600_000)).toBe(600_000)
  })

  it('names no time when it is 0, so the backoff stands', () => {
    expect(asked(0)).toBe(3750)
  })

  it('is never answered earlier, a little later, and within a day', () => {
    fc.assert(
      fc.property(fc.double({ min: 1, max: 1e12, noNaN: true }), anyRandom, (ms, chance) => {
        const wait = asked(ms, () => chance)
        expect(wait).toBeGreaterThanOrEqual(Math.min(ms, DAY_MS))
        expect(wait).toBeLessThanOrEqual(Math.min(DAY_MS, ms + Math.min(ms * 0.1, 30_000) + 1))
      }),
    )
  })

  it('is ignored when it is no time', () => {
    expect(asked(Number.NaN)).toBe(asked(0))
    expect(asked(-5)).toBe(asked(0))
  })
})
