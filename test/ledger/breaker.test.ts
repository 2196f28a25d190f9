// What the ledger keeps of services: breakers that move once however many try, permits that are exact over the fleet,
// and sums of what each process saw.
import { beforeEach, describe, expect, it } from 'vitest'
import { newJobId } from '../../src/domain/ids.js'
import {
  type BreakerMove,
  breakers,
  moveBreaker,
  reportProbes,
  returnPermits,
  setServiceSettings,
  takePermits,
} from '../../src/ledger/breaker.js'
import { addSightings, forgetSightings, type Sighting, seenOf } from '../../src/ledger/service-window.js'
import type { FreshDatabase } from '../support/databases.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'

const START = '2031-05-01T10:00:00.000Z'
const AT = Date.parse(START)

const opening = (change: Partial<BreakerMove> = {}): BreakerMove => ({
  service: 's3',
  fromVersion: 0,
  state: 'open',
  openMs: 5_000,
  openings: 1,
  shadow: false,
  reason: '5 failures in a row',
  changedBy: 'w1',
  ...change,
})

const sighting = (change: Partial<Sighting> = {}): Sighting => ({
  service: 's3',
  sliceMs: 5_000,
  firstAttempts: 0,
  retries: 0,
  succeeded: 0,
  failed: 0,
  run: 0,
  runSince: null,
  lastSuccessAt: null,
  ...change,
})

describe.each(EMBEDDED_AND_SERVER)('services on $name', ({ open }) => {
  let fresh: FreshDatabase
  const only = async () => (await breakers(fresh.db, ['s3'])).breakers[0]

  beforeEach(async () => {
    fresh = await open({ now: START })
  })

  it('tells the time even if there is no breaker', async () => {
    expect(await breakers(fresh.db)).toEqual({ readAt: AT, breakers: [] })
  })

  it('moves a breaker for one of many who saw the same, and for none who saw something older', async () => {
    const moves = await Promise.all([1, 2, 3].map(() => moveBreaker(fresh.another(), opening(), null)))
    expect(moves.filter(moved => moved)).toHaveLength(1)
    expect(await only()).toMatchObject({ state: 'open', version: 1, since: AT, openUntil: AT + 5_000, openings: 1 })

    fresh.clock.advance(5_000)
    expect(await moveBreaker(fresh.db, opening({ state: 'half_open', openMs: undefined }), null)).toBe(false)
    const half = {
      ...opening({ fromVersion: 1, state: 'half_open', reason: 'time to look' }),
      openMs: undefined,
    }
    expect(await moveBreaker(fresh.db, half, null)).toBe(true)
    expect(await only()).toMatchObject({ state: 'half_open', version: 2, openUntil: null, since: AT + 5_000 })
  })

  it('hands out no more permits than are allowed, whoever asks', async () => {
    await moveBreaker(fresh.db, opening({ state: 'half_open', openMs: undefined }), null)
    const row = { service: 's3', version: 1 }
    const taken = await Promise.all([1, 2, 3, 4].map(() => takePermits(fresh.another(), row, 2, 3)))
    expect(taken.reduce((sum, permits) => sum + permits)).toBe(3)
    expect(await takePermits(fresh.db, row, 1, 3)).toBe(0)
    await returnPermits(fresh.db, row, 1)
    expect(await takePermits(fresh.db, row, 5, 3)).toBe(1)
    expect(await takePermits(fresh.db, { ...row, version: 2 }, 1, 9)).toBe(0)
  })

  it('counts the ends of probes of this opening only', async () => {
    await moveBreaker(fresh.db, opening({ state: 'half_open', openings: 2, openMs: undefined }), null)
    await reportProbes(fresh.db, { service: 's3', openings: 1 }, { succeeded: 9, failed: 9 })
    await reportProbes(fresh.db, { service: 's3', openings: 2 }, { succeeded: 2, failed: 1 })
    expect(await only()).toMatchObject({ probesSucceeded: 2, probesFailed: 1 })

    await takePermits(fresh.db, { service: 's3', version: 1 }, 9, 9)
    await moveBreaker(fresh.db, opening({ fromVersion: 1, state: 'half_open', openings: 2, openMs: undefined }), null)
    expect(await only()).toMatchObject({ version: 2, permits: 3, probesSucceeded: 2, probesFailed: 1 })
  })

  it('keeps settings beside the breaker, with a version of their own', async () => {
    expect(await setServiceSettings(fresh.db, 's3', { breaker: { shadow: true } }, 'ann', null)).toBe(1)
    expect(await setServiceSettings(fresh.db, 's3', null, 'ann', null)).toBe(2)
    expect(await only()).toMatchObject({ state: 'closed', settings: null, settingsVersion: 2, version: 1 })
  })

  it('sums what each process saw, within the window and since the last move', async () => {
    const [mine, yours] = [newJobId(), newJobId()]
    await addSightings(fresh.db, mine, [sighting({ firstAttempts: 5, succeeded: 5, lastSuccessAt: AT - 10 })])
    fresh.clock.advance(1_000)
    await addSightings(fresh.db, mine, [
      sighting({ firstAttempts: 1, retries: 2, failed: 3, run: 3, runSince: AT + 500 }),
    ])
    await addSightings(fresh.db, yours, [sighting({ firstAttempts: 1, failed: 1, run: 1, runSince: AT + 900 })])
    const all = { service: 's3', healthMs: 30_000, attemptsMs: 30_000, since: 0 }
    const seen = await seenOf(fresh.db, [all, { ...all, service: 'mail' }])
    expect(seen.toSorted((a, b) => b.run - a.run)).toEqual([
      {
        service: 's3',
        source: mine,
        firstAttempts: 6,
        retries: 2,
        succeeded: 5,
        failed: 3,
        run: 3,
        runSince: AT + 500,
        lastSuccessAt: AT - 10,
      },
      {
        service: 's3',
        source: yours,
        firstAttempts: 1,
        retries: 0,
        succeeded: 0,
        failed: 1,
        run: 1,
        runSince: AT + 900,
        lastSuccessAt: null,
      },
    ])
    expect(await seenOf(fresh.db, [{ ...all, since: AT + 1 }])).toMatchObject([
      { succeeded: 0, failed: 0 },
      { succeeded: 0, failed: 0 },
    ])
    fresh.clock.advance(30_000)
    expect(await seenOf(fresh.db, [all])).toEqual([])
    expect(await forgetSightings(fresh.db, 60_000, 1)).toBe(0)
    expect(await forgetSightings(fresh.db, 10_000, 1)).toBe(2)
  })
})
