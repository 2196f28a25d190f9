// A breaker's judgement: what opens it, for how long, who may try, what closes it, and how its jobs are let go.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Breaker, BreakerSettings, ServiceSight } from '../../src/domain/breaker.js'
import { KINDS } from '../../src/domain/failure.js'
import type { Outcome } from '../../src/domain/outcome.js'
import { allowance, type Evidence, evidenceOf, healthOf, NO_EVIDENCE, step, viewOf } from '../../src/policy/breaker.js'
import { classify } from '../../src/policy/classify.js'
import { DEFAULT_BREAKER } from '../../src/policy/service-settings.js'
import { aFailure } from '../support/story.js'

const NOW = 1_000_000

const breaker = (change: Partial<Breaker> = {}): Breaker => ({
  service: 's3',
  state: 'closed',
  since: 0,
  openUntil: null,
  openings: 0,
  permits: 0,
  permitsSince: 0,
  probesSucceeded: 0,
  probesFailed: 0,
  version: 1,
  reason: '',
  changedBy: '',
  shadow: false,
  ...change,
})

const settings = (change: Partial<BreakerSettings> = {}): BreakerSettings => ({ ...DEFAULT_BREAKER, ...change })

const next = (
  from: Partial<Breaker>,
  evidence: Partial<Evidence> = {},
  { now = NOW, chance = 0.5, ...change }: Partial<BreakerSettings> & { now?: number; chance?: number } = {},
) => step(breaker(from), { ...NO_EVIDENCE, ...evidence }, settings(change), now, () => chance)

const sight = (change: Partial<ServiceSight>): ServiceSight => ({
  firstAttempts: 0,
  retries: 0,
  succeeded: 0,
  failed: 0,
  run: 0,
  runSince: null,
  lastSuccessAt: null,
  ...change,
})

describe('what an attempt says of the service', () => {
  const failed = (kind: (typeof KINDS)[number], service?: string): Outcome => ({
    type: 'failed',
    failure: aFailure({ kind, ...(service !== undefined && { service }) }),
  })

  it('is bad only for kinds that speak of its health', () => {
    const bad = KINDS.filter(kind => healthOf(failed(kind), 's3', DEFAULT_BREAKER.kinds) === 'bad')
    expect(bad).toEqual(['transient', 'network', 'system'])
  })

  it('is nothing when nothing told what went wrong: the mistake may be the handler’s own', () => {
    const failure = classify(new Error('boom'))
    expect(failure).toMatchObject({ kind: 'transient', unknown: true })
    expect(healthOf({ type: 'failed', failure }, 's3', DEFAULT_BREAKER.kinds)).toBe('nothing')
    const told = classify(Object.assign(new Error('boom'), { status: 503 }))
    expect(healthOf({ type: 'failed', failure: told }, 's3', DEFAULT_BREAKER.kinds)).toBe('bad')
  })

  it('is nothing when the failure names another service, or the attempt never came to an end of its own', () => {
    expect(healthOf(failed('transient', 'mail'), 's3', DEFAULT_BREAKER.kinds)).toBe('nothing')
    expect(healthOf(failed('transient', 's3'), 's3', DEFAULT_BREAKER.kinds)).toBe('bad')
    expect(healthOf({ type: 'interrupted', started: true }, 's3', DEFAULT_BREAKER.kinds)).toBe('nothing')
    expect(healthOf({ type: 'snoozed', delayMs: 1 }, 's3', DEFAULT_BREAKER.kinds)).toBe('nothing')
    expect(healthOf({ type: 'succeeded', result: null }, 's3', DEFAULT_BREAKER.kinds)).toBe('good')
  })
})

describe('failures in a row', () => {
  it('are counted over all processes, from the last success anywhere', () => {
    const seen = [
      sight({ succeeded: 9, lastSuccessAt: 100, run: 3, failed: 3, runSince: 150 }),
      sight({ succeeded: 5, lastSuccessAt: 120, run: 2, failed: 4, runSince: 130 }),
      sight({ run: 7, failed: 7, runSince: 110 }),
    ]
    expect(evidenceOf(seen, 0)).toEqual({ succeeded: 14, failed: 14, run: 5 })
  })

  it('from before the last move say nothing', () => {
    expect(evidenceOf([sight({ run: 7, failed: 7, runSince: 110 })], 111).run).toBe(0)
  })
})

describe('a closed breaker', () => {
  it('opens at so many failures in a row, and says why and for how long', () => {
    expect(next({}, { failed: 4, run: 4 })).toBeUndefined()
    expect(next({}, { failed: 5, run: 5 })).toEqual({
      state: 'open',
      openMs: 5_000,
      openings: 1,
      reason: '5 failures in a row, without a success anywhere: open for 5 s',
    })
  })

  it('takes a short run for chance where much happens', () => {
    expect(next({}, { succeeded: 9_000, failed: 1_000, run: 99 })).toBeUndefined()
    expect(next({}, { succeeded: 9_000, failed: 1_000, run: 100 })).toMatchObject({ state: 'open' })
  })

  it('opens when too large a share failed, if there was enough to tell', () => {
    expect(next({}, { succeeded: 9, failed: 10 })).toBeUndefined()
    expect(next({}, { succeeded: 11, failed: 9 })).toBeUndefined()
    expect(next({}, { succeeded: 10, failed: 10 })?.reason).toContain('10 of the last 20 attempts failed (50%)')
  })

  it('stays open longer each time it fails again soon, up to a cap, and starts anew when it had proven itself', () => {
    const reopened = (openings: number, since = NOW - 1) => next({ openings, since, version: 3 }, { run: 5 })
    expect([0, 1, 2, 3, 9].map(openings => reopened(openings)?.openMs)).toEqual([5_000, 10_000, 20_000, 40_000, 60_000])
    expect(reopened(9, NOW - 60_000)).toMatchObject({ openMs: 5_000, openings: 1 })
  })

  it('spreads its open time by chance', () => {
    expect(next({}, { run: 5 }, { chance: 0 })?.openMs).toBe(4_000)
    expect(next({}, { run: 5 }, { chance: 0.999_999 })?.openMs).toBe(6_000)
  })
})

describe('an open breaker', () => {
  it('waits for its time, whatever happens, then lets a few try', () => {
    expect(next({ state: 'open', openUntil: NOW + 1 }, { succeeded: 100 })).toBeUndefined()
    expect(next({ state: 'open', openUntil: NOW, openings: 2 })).toEqual({
      state: 'half_open',
      openings: 2,
      reason: 'its open time is over: 3 jobs may try',
    })
  })

  it('that is switched off closes; one that a person isolated stays', () => {
    expect(next({ state: 'open', openUntil: NOW + 1 }, {}, { enabled: false })).toMatchObject({
      state: 'closed',
      openings: 0,
    })
    expect(next({ state: 'isolated' }, {}, { enabled: false })).toBeUndefined()
    expect(next({ state: 'isolated' }, { succeeded: 100 })).toBeUndefined()
  })
})

describe('a half-open breaker', () => {
  const half = { state: 'half_open', openings: 2, permits: 3, permitsSince: NOW - 1, since: NOW - 1 } as const

  it('closes when enough of those that tried succeed: one job that always fails does not keep it open', () => {
    expect(next({ ...half, probesSucceeded: 1, probesFailed: 1 })).toBeUndefined()
    expect(next({ ...half, probesSucceeded: 2, probesFailed: 1 })).toMatchObject({ state: 'closed' })
  })

  it('opens again, for longer, when enough can no longer succeed', () => {
    expect(next({ ...half, probesFailed: 1 })).toBeUndefined()
    expect(next({ ...half, probesFailed: 2 })).toMatchObject({ state: 'open', openings: 3, openMs: 20_000 })
  })

  it('lets others try when nothing was heard of those that did', () => {
    expect(next({ ...half, probesSucceeded: 1, permitsSince: NOW - 59_999 })).toBeUndefined()
    expect(next({ ...half, probesSucceeded: 1, permitsSince: NOW - 60_000 })).toMatchObject({ state: 'half_open' })
    expect(next({ ...half, permits: 0, permitsSince: 0 })).toBeUndefined()
    expect(next({ ...half, permits: 1, probesSucceeded: 1, permitsSince: 0 })).toBeUndefined()
  })

  it('in shadow goes by what ran since', () => {
    expect(next({ ...half, permits: 0 }, { succeeded: 2 }, { shadow: true })).toMatchObject({ state: 'closed' })
    expect(next({ ...half, permits: 0 }, { failed: 2 }, { shadow: true })).toMatchObject({ state: 'open' })
  })
})

describe('how many jobs are let through', () => {
  it('by state: none, a few, or all', () => {
    const allowed = (from: Partial<Breaker>, change: Partial<BreakerSettings> = {}) =>
      allowance(breaker(from), settings(change), NOW)
    expect(allowed({})).toBe(Number.POSITIVE_INFINITY)
    expect(allowed({ state: 'open', openUntil: NOW })).toBe(0)
    expect(allowed({ state: 'half_open' })).toBe(3)
    expect(allowed({ state: 'isolated' }, { shadow: true })).toBe(0)
    expect(allowed({ state: 'open' }, { shadow: true })).toBe(Number.POSITIVE_INFINITY)
    expect(allowed({ state: 'half_open' }, { enabled: false })).toBe(Number.POSITIVE_INFINITY)
  })

  it('after closing: a rate that starts small, doubles, and ends', () => {
    const allowedAfter = (ms: number) =>
      allowance(breaker({ openings: 1, permitsSince: NOW - ms }), DEFAULT_BREAKER, NOW)
    expect([0, 1_000, 2_000, 4_000, 10_000].map(allowedAfter)).toEqual([1, 12, 29, 87, 895])
    expect(allowedAfter(30_000)).toBe(Number.POSITIVE_INFINITY)
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 28_000 }), ms => {
        const inASecond = allowedAfter(ms + 1_000) - allowedAfter(ms)
        // Never more in a second than the rate at its end allows.
        expect(inASecond).toBeLessThanOrEqual(10 * 2 ** ((ms + 1_000) / 2_000) + 1)
      }),
    )
  })
})

describe('what a failing job is told', () => {
  it('holds while the breaker is not closed, or has only just closed', () => {
    const seen = (from: Partial<Breaker>, suspected = false) => viewOf(breaker(from), DEFAULT_BREAKER, NOW, suspected)
    expect(seen({ state: 'open', openUntil: NOW + 7_000 })).toMatchObject({ holding: true, lookInMs: 7_000 })
    expect(seen({ state: 'open', openUntil: NOW - 7_000 })).toMatchObject({ holding: true, lookInMs: 1_000 })
    expect(seen({ openings: 1, permitsSince: NOW - 10_000 })).toMatchObject({ holding: true, lookInMs: 20_000 })
    expect(seen({ openings: 1, permitsSince: NOW - 30_000 }, true)).toMatchObject({ holding: false, suspected: true })
    expect(viewOf(breaker(), settings({ shadow: true }), NOW, true)).toMatchObject({ holding: false, suspected: false })
  })
})

describe('whatever happens', () => {
  const evidence = fc.record({
    succeeded: fc.nat({ max: 1_000 }),
    failed: fc.nat({ max: 1_000 }),
    run: fc.nat({ max: 100 }),
  })

  it('a breaker moves only along its arrows, and its open time stays within its bounds', () => {
    const arrows = { closed: ['open'], open: ['half_open'], half_open: ['closed', 'open', 'half_open'], isolated: [] }
    const from = fc.record({
      state: fc.constantFrom('closed', 'open', 'half_open', 'isolated'),
      openUntil: fc.integer({ min: NOW - 10, max: NOW + 10 }),
      openings: fc.nat({ max: 50 }),
      permits: fc.nat({ max: 5 }),
      since: fc.integer({ min: 0, max: NOW }),
      permitsSince: fc.integer({ min: 0, max: NOW }),
      probesSucceeded: fc.nat({ max: 3 }),
      probesFailed: fc.nat({ max: 3 }),
    })
    fc.assert(
      fc.property(from, evidence, fc.double({ min: 0, max: 0.999, noNaN: true }), (state, seen, chance) => {
        const move = step(breaker(state), seen, DEFAULT_BREAKER, NOW, () => chance)
        if (!move) return
        expect(arrows[state.state]).toContain(move.state)
        expect(move.reason).not.toBe('')
        expect(move.openMs === undefined).toBe(move.state !== 'open')
        if (move.openMs === undefined) return
        expect(move.openMs).toBeGreaterThanOrEqual(4_000)
        expect(move.openMs).toBeLessThanOrEqual(72_000)
      }),
    )
  })
})
