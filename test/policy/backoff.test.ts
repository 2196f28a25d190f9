// Backoffs: what a user writes, what is stored, and the delays that follow.
import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../../src/domain/errors.js'
import { type Backoff, DEFAULT_POLICY } from '../../src/domain/policy.js'
import {
  custom,
  delays,
  exponential,
  fixed,
  immediate,
  linear,
  parseBackoff,
  rawDelayMs,
  statedMaxMs,
} from '../../src/policy/backoff.js'

const first = (backoff: Backoff, count: number) =>
  Array.from({ length: count }, (_, index) => rawDelayMs(backoff, index + 1))

describe('the delays of a backoff', () => {
  it.each<[string, Backoff, number[]]>([
    ['exponential 1 s × 3', exponential({ initialMs: 1000, factor: 3 }), [1000, 3000, 9000, 27_000]],
    ['exponential by default', exponential(), [5000, 15_000, 45_000, 135_000]],
    [
      'exponential up to its maximum',
      exponential({ initialMs: 1000, factor: 3, maxMs: 5000 }),
      [1000, 3000, 5000, 5000],
    ],
    ['exponential from 0', exponential({ initialMs: 0, factor: 1000 }), [0, 0, 0]],
    ['linear 1 s, step 1.5 s', linear({ initialMs: 1000, stepMs: 1500 }), [1000, 2500, 4000, 5500]],
    ['linear up to its maximum', linear({ initialMs: 1000, stepMs: 1500, maxMs: 3000 }), [1000, 2500, 3000]],
    ['fixed', fixed({ delayMs: 700 }), [700, 700, 700]],
    ['immediate', immediate(), [0, 0, 0]],
    ['a list, whose last value repeats', delays([5000, 15_000, 45_000]), [5000, 15_000, 45_000, 45_000]],
    ['custom', custom(attempt => attempt * 10), [10, 20, 30]],
  ])('%s', (_, backoff, expected) => {
    expect(first(backoff, expected.length)).toEqual(expected)
  })

  it.each<[string, Backoff]>([
    ['is missing, as after storage', { type: 'custom' }],
    [
      'throws',
      custom(() => {
        throw new Error('mine')
      }),
    ],
    ['gives NaN', custom(() => Number.NaN)],
    ['gives a negative delay', custom(() => -1)],
    ['gives no end', custom(() => Number.POSITIVE_INFINITY)],
    ['gives text', custom((() => '5') as unknown as () => number)],
  ])('falls back to the default when a custom function %s', (_, backoff) => {
    expect(first(backoff, 3)).toEqual(first(DEFAULT_POLICY.backoff, 3))
  })

  it('gives a custom function the payload, for waits that depend on the job', () => {
    const byOperation = custom((attempt, payload) => ({ create: 10_000, get: 2_000 })[String(payload)] ?? attempt)
    expect(rawDelayMs(byOperation, 1, '"create"')).toBe(10_000)
    expect(rawDelayMs(byOperation, 1, '"get"')).toBe(2_000)
    expect(rawDelayMs(byOperation, 7, 'null')).toBe(7)
    expect(rawDelayMs(byOperation, 7)).toBe(7)
    expect(rawDelayMs(byOperation, 1, 'not JSON')).toBe(rawDelayMs(DEFAULT_POLICY.backoff, 1))
  })

  it('stays finite after a million failures', () => {
    for (const backoff of [
      exponential({ factor: 1000 }),
      exponential({ initialMs: 0 }),
      linear(),
      delays([1]),
      fixed(),
    ])
      expect(Number.isFinite(rawDelayMs(backoff, 1e6))).toBe(true)
  })

  it('names the longest delay it states itself, for merging policies', () => {
    expect(statedMaxMs(fixed({ delayMs: 300_000 }))).toBe(300_000)
    expect(statedMaxMs(delays([1, 90_000, 2]))).toBe(90_000)
    expect(statedMaxMs(exponential({ maxMs: 70_000 }))).toBe(70_000)
    expect(statedMaxMs(exponential({ initialMs: 120_000 }))).toBe(120_000)
    expect(statedMaxMs(immediate())).toBeUndefined()
  })
})

describe('mistakes show where they are written', () => {
  it.each<[string, () => unknown, string]>([
    ['a negative start', () => exponential({ initialMs: -1 }), 'initialMs is -1'],
    ['a factor below 1', () => exponential({ factor: 0.5 }), 'factor is 0.5'],
    ['a factor without end', () => exponential({ factor: Number.POSITIVE_INFINITY }), 'factor is Infinity'],
    ['a maximum below the start', () => linear({ initialMs: 2000, maxMs: 1000 }), 'at least initialMs (2000)'],
    ['a step that is no number', () => linear({ stepMs: Number.NaN }), 'stepMs is NaN'],
    ['no delay at all', () => fixed({ delayMs: '5' as unknown as number }), 'delayMs is "5"'],
    ['an empty list', () => delays([]), 'a list of 1 to 1000'],
    ['a bad delay in a list', () => delays([1, -2]), 'delay 2 is -2'],
    ['no function', () => custom(5 as unknown as () => number), 'a function (attempt, payload) => milliseconds'],
    ['stored: not an object', () => parseBackoff('exponential'), 'backoff is "exponential"'],
    ['stored: nothing', () => parseBackoff(null), 'backoff is null'],
    ['stored: unknown type', () => parseBackoff({ type: 'fibonacci' }), 'one of exponential, linear'],
    ['stored: a name from the prototype', () => parseBackoff({ type: 'toString' }), 'backoff type is "toString"'],
    ['stored: bad list', () => parseBackoff({ type: 'delays' }), 'delays backoff is undefined'],
    ['stored: bad number', () => parseBackoff({ type: 'fixed', delayMs: {} }), 'delayMs is "{}"'],
  ])('%s', (_, make, message) => {
    let thrown: unknown
    try {
      make()
    } catch (error) {
      thrown = error
    }
    expect(isRedriveError(thrown, 'SETTING_INVALID')).toBe(true)
    expect((thrown as Error).message).toContain(message)
  })
})

describe('a stored backoff', () => {
  it.each<Backoff>([
    exponential({ initialMs: 1, factor: 2, maxMs: 9 }),
    exponential(),
    linear({ initialMs: 1, stepMs: 2 }),
    fixed(),
    immediate(),
    delays([1, 2, 3]),
  ])('comes back as it was: $type', backoff => {
    expect(parseBackoff(JSON.parse(JSON.stringify(backoff)))).toEqual(backoff)
  })

  it('loses a custom function, and says so by having none', () => {
    expect(parseBackoff(JSON.parse(JSON.stringify(custom(() => 1))))).toEqual({ type: 'custom' })
  })
})
