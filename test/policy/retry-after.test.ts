// How long the other side asked us to wait, in every form it comes in.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseHttpDate } from '../../src/policy/retry-after/http-date.js'
import { readRetryAfter } from '../../src/policy/retry-after.js'

/** Sun, 06 Nov 1994 08:49:37 GMT */
const NOW = 784_111_777_000
const LATER = Date.UTC(2025, 0, 15, 12, 0, 0)

describe('a wait is read from', () => {
  it.each<[string, unknown, number]>([
    ['retryAfterMs', { retryAfterMs: 1500 }, 1500],
    ['retryAfter in seconds', { retryAfter: 2 }, 2000],
    ['retryAfter as text', { retryAfter: '2.5' }, 2500],
    ['retry_after', { retry_after: 7 }, 7000],
    ['Retry-After in seconds', { headers: { 'Retry-After': '120' } }, 120_000],
    ['a header of any case', { headers: { 'RETRY-AFTER': 3 } }, 3000],
    ['a Headers instance', { response: { headers: new Headers({ 'Retry-After': '4' }) } }, 4000],
    ['a Map', { headers: new Map([['Retry-After', '5']]) }, 5000],
    ['a list of pairs', { headers: [['Retry-After', '6']] }, 6000],
    ['a flat list', { headers: ['Server', 'x', 'Retry-After', '6'] }, 6000],
    ['a header with several values', { headers: { 'retry-after': ['8', '9'] } }, 8000],
    ['the AWS SDK', { $response: { headers: { 'retry-after': '9' } } }, 9000],
    ['responseHeaders', { responseHeaders: { 'retry-after': '10' } }, 10_000],
    ['an HTTP date', { headers: { 'retry-after': 'Sun, 06 Nov 1994 08:50:37 GMT' } }, 60_000],
    ['an old HTTP date', { headers: { 'retry-after': 'Sunday, 06-Nov-94 08:49:47 GMT' } }, 10_000],
    ["C's date", { headers: { 'retry-after': 'Sun Nov  6 08:49:38 1994' } }, 1000],
    ['retry-after-ms, which is finer', { headers: { 'retry-after-ms': '250', 'retry-after': '1' } }, 250],
    ['a duration', { headers: { 'x-ratelimit-reset-requests': '1m30s' } }, 90_000],
    ['a short duration', { headers: { 'x-ratelimit-reset-requests': '250ms' } }, 250],
    ['a reset in seconds', { headers: { 'ratelimit-reset': '30' } }, 30_000],
    ['a reset after seconds', { headers: { 'x-ratelimit-reset-after': '0.5' } }, 500],
    ['a past date, as 0', { headers: { 'retry-after': 'Sun, 06 Nov 1994 08:00:00 GMT' } }, 0],
    ['a negative wait, as 0', { headers: { 'retry-after': '-5' } }, 0],
    ['a negative property, as 0', { retryAfterMs: -5 }, 0],
  ])('%s', (_, error, expected) => {
    expect(readRetryAfter(error, NOW)).toBe(expected)
  })

  it('a reset time since 1970, in seconds or milliseconds by its size', () => {
    const reset = (value: number) => ({ status: 429, headers: { 'x-ratelimit-reset': String(value) } })
    expect(readRetryAfter(reset(LATER / 1000 + 60), LATER)).toBe(60_000)
    expect(readRetryAfter(reset(LATER + 60_000), LATER)).toBe(60_000)
    expect(readRetryAfter(reset(60), LATER)).toBe(60_000)
    expect(readRetryAfter(reset(LATER / 1000 - 60), LATER)).toBe(0)
  })

  it("the answer's own Date where nobody says what time it is", () => {
    const headers = { date: 'Sun, 06 Nov 1994 08:49:37 GMT', 'retry-after': 'Sun, 06 Nov 1994 08:50:07 GMT' }
    expect(readRetryAfter({ headers })).toBe(30_000)
  })
})

describe('nothing is read from', () => {
  const hostile = {
    get headers(): never {
      throw new Error('no')
    },
  }
  it.each<[string, unknown]>([
    ['nothing', undefined],
    ['null', null],
    ['text', 'retry after 5'],
    ['garbage', { headers: { 'retry-after': 'soon' } }],
    ['an empty header', { headers: { 'retry-after': '' } }],
    ['half a duration', { headers: { 'x-ratelimit-reset-requests': '1m30' } }],
    ['NaN', { retryAfterMs: Number.NaN, retryAfter: Number.POSITIVE_INFINITY }],
    ['a getter that throws', hostile],
    ['an impossible date', { headers: { 'retry-after': 'Sun, 99 Nov 1994 08:49:37 GMT' } }],
  ])('%s', (_, error) => {
    expect(readRetryAfter(error, NOW)).toBeUndefined()
  })

  it('a date, when it cannot be measured', () => {
    expect(readRetryAfter({ headers: { 'retry-after': 'Sun, 06 Nov 1994 08:50:37 GMT' } })).toBeUndefined()
  })

  it('a reset header that comes with every answer, while requests remain', () => {
    const headers = { 'x-ratelimit-reset': '3600', 'x-ratelimit-remaining': '4999' }
    expect(readRetryAfter({ headers }, NOW, 500)).toBeUndefined()
    expect(readRetryAfter({ headers }, NOW, 429)).toBe(3_600_000)
    expect(readRetryAfter({ headers: { ...headers, 'x-ratelimit-remaining': '0' } }, NOW, 403)).toBe(3_600_000)
  })
})

describe('HTTP dates', () => {
  it('agree with the calendar on every second of four centuries', () => {
    fc.assert(
      fc.property(fc.integer({ min: Date.UTC(1800, 0) / 1000, max: Date.UTC(2200, 0) / 1000 }), seconds => {
        const date = new Date(seconds * 1000)
        expect(parseHttpDate(date.toUTCString())).toBe(seconds * 1000)
        expect(parseHttpDate(date.toISOString())).toBe(seconds * 1000)
      }),
    )
  })

  it('may carry an offset', () => {
    expect(parseHttpDate('1994-11-06T09:49:37+01:00')).toBe(NOW)
    expect(parseHttpDate('1994-11-06T03:49:37.250-05:00')).toBe(NOW)
  })
})
