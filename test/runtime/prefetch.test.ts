// How many jobs are claimed ahead of free slots: none for slow handlers, hundreds for fast ones.
import { describe, expect, it } from 'vitest'
import { Prefetch } from '../../src/runtime/prefetch.js'

interface Pace {
  readonly perMs: number
  readonly roundTripMs: number
  readonly payloadText?: string
}

/** A worker that finishes so many jobs in each millisecond, with claims that take so long; and when it last claimed. */
function working(fetches: number, { perMs, roundTripMs, payloadText = '{}' }: Pace) {
  const prefetch = new Prefetch()
  let now = 0
  for (let nth = 0; nth < fetches; nth += 1) {
    prefetch.fetched(now, now + roundTripMs, [{ payloadText }])
    now += roundTripMs
    for (let job = 0; job < Math.round(perMs * roundTripMs); job += 1) prefetch.jobFinished()
  }
  return { prefetch, now }
}

const targetOf = ({ prefetch, now }: ReturnType<typeof working>) => prefetch.target(now)

describe('claiming ahead', () => {
  it('starts with nothing: what is not known to be fast is left for others', () => {
    expect(new Prefetch().target(0)).toBe(0)
    expect(targetOf(working(1, { perMs: 50, roundTripMs: 10 }))).toBe(0)
  })

  it('needs no second claim to see that handlers are fast', () => {
    const { prefetch, now } = working(1, { perMs: 50, roundTripMs: 10 })
    expect(prefetch.target(now + 20)).toBe(1_000)
  })

  it('claims nothing ahead for handlers that are slower than the round trip', () => {
    expect(targetOf(working(50, { perMs: 0.01, roundTripMs: 5 }))).toBe(0)
  })

  it('claims about four round trips of work ahead for fast handlers', () => {
    const target = targetOf(working(50, { perMs: 20, roundTripMs: 5 }))
    expect(target).toBeGreaterThanOrEqual(360)
    expect(target).toBeLessThanOrEqual(400)
  })

  it('claims more than a thousand ahead only if they run within 60 ms, and never more than 2,000', () => {
    expect(targetOf(working(50, { perMs: 10, roundTripMs: 100 }))).toBe(1_000)
    expect(targetOf(working(50, { perMs: 25, roundTripMs: 50 }))).toBe(1_500)
    expect(targetOf(working(50, { perMs: 1_000, roundTripMs: 100 }))).toBe(2_000)
  })

  it('claims fewer of those that are large: no more than 16 million characters', () => {
    const large = { perMs: 10, roundTripMs: 100, payloadText: 'x'.repeat(100_000) }
    expect(targetOf(working(50, large))).toBe(160)
  })

  it('forgets how fast it was when work becomes slow', () => {
    const { prefetch } = working(50, { perMs: 20, roundTripMs: 5 })
    for (let now = 1_000; now < 41_000; now += 1_000) prefetch.fetched(now, now + 5, [])
    expect(prefetch.target(41_000)).toBe(0)
  })

  it('claims nothing ahead while jobs that were fast do not end any more, even before the next claim', () => {
    const { prefetch, now } = working(50, { perMs: 20, roundTripMs: 5 })
    prefetch.fetched(now, now + 5, [])
    expect(prefetch.target(now + 5)).toBeGreaterThan(100)
    expect(prefetch.target(now + 500)).toBe(0)
  })
})
