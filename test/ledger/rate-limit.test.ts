// Schedules of rate limits in the ledger: the same arithmetic as policy/rate.ts, exact whoever asks at the same time; and
// held jobs that are let go in the order of their line.
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Pace, Slot } from '../../src/domain/rate-limit.js'
import { claim } from '../../src/ledger/claim.js'
import type { Database } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { promote } from '../../src/ledger/promote.js'
import { acquireRate, forgetRates, heldByRate, releaseRate } from '../../src/ledger/rate-limit.js'
import { followRateLimit, rateLimitStates, setRateLimit } from '../../src/ledger/rate-limit-setting.js'
import { settle } from '../../src/ledger/settle.js'
import { paceOf, slotsFrom, takeSlots } from '../../src/policy/rate.js'
import { DATABASES } from '../support/databases.js'
import { aJob, aSession, ended, take } from '../support/story.js'

const AHEAD = { horizonMs: 250, windowMs: 200 }
const TEN_A_SECOND = paceOf({ limit: 10, intervalMs: 1_000, burst: 1 })
const NOON = '2030-01-01T12:00:00.000Z'

const ask = async (db: Database, pace: Pace, wanted: { released?: number; fresh?: number }, key = 'acme') => {
  const request = { name: 'mail', key, pace, released: 0, fresh: 0, ...wanted }
  const [answer] = await acquireRate(db, [request], AHEAD)
  if (!answer) throw new Error('no answer')
  return { ...answer, slots: slotsFrom(answer) }
}

/** Holds jobs as a worker does whose key has no slot for them. */
const hold = (db: Database, jobs: readonly ClaimedJob[], delayMs = 60_000, key = 'acme') =>
  settle(
    db,
    jobs.map(job => {
      const heldBy = heldByRate('mail', key)
      const outcome = { type: 'interrupted', started: false, hold: { by: heldBy, delayMs, reason: 'over' } } as const
      return ended(job, outcome, { type: 'hold', delayMs, reason: 'over its rate', heldBy })
    }),
    '1',
  )

const letGo = (db: Database) =>
  releaseRate(db, { channel: null, windowMs: AHEAD.windowMs, pauseMs: 75, mostKeys: 100, mostJobs: 100 })

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open, kind }) => {
  it('gives the slots that the arithmetic says', async () => {
    const { db, clock } = await open({ now: NOON })
    const pace = paceOf({ limit: 20, intervalMs: 1_000, burst: 4 })
    let nextAt = Date.parse(NOON) - pace.savedMs
    for (const [afterMs, fresh] of [
      [0, 3],
      [30, 10],
      [500, 1],
      [60_000, 50],
      [100, 2],
    ] as const) {
      clock.advance(afterMs)
      const now = Date.parse(clock.now as string)
      const expected = takeSlots({ nextAt, now }, pace, fresh, AHEAD.horizonMs)
      const answer = await ask(db, pace, { fresh })
      const rounded = (slots: readonly Slot[]) =>
        slots.map(({ at, until }) => [Math.round(at - now), Math.round(until - now)])
      expect(rounded(answer.slots)).toEqual(rounded(expected.slots))
      nextAt = expected.nextAt
    }
  })

  it('gives no slot twice, whoever asks at the same time', async () => {
    const { db, another } = await open()
    const pace = paceOf({ limit: 1_000, intervalMs: 1_000, burst: 20 })
    const doors = kind.startsWith('server') ? [db, another(), another()] : [db, another()]
    const slots: number[] = []
    await Promise.all(
      doors.flatMap(door =>
        Array.from({ length: 20 }, async (_, round) => {
          const keys = round % 2 === 0 ? ['a', 'b'] : ['b', 'a'] // asked for in any order: no circle of waiting
          const requests = keys.map(key => ({ name: 'mail', key, pace, released: 0, fresh: 3 }))
          const answers = await acquireRate(door, requests, AHEAD)
          for (const answer of answers) if (answer.key === 'a') slots.push(...slotsFrom(answer).map(({ at }) => at))
        }),
      ),
    )
    slots.sort((a, b) => a - b)
    for (const [from, start] of slots.entries()) {
      for (let to = from; to < slots.length; to += 1) {
        expect(to - from + 1).toBeLessThanOrEqual(20 + ((slots[to] as number) - start) + 1e-3)
      }
    }
    expect(slots.length).toBeGreaterThan(50)
  })

  it('lets held jobs go in the order of their line, as many as can start, and newcomers wait behind them', async () => {
    const { db, clock } = await open({ now: NOON })
    const session = await aSession(db)
    const jobs = Array.from({ length: 6 }, () => aJob())
    await enqueue(db, jobs, null)
    const claimed = await take(db, session)
    expect((await ask(db, TEN_A_SECOND, { fresh: 6 })).given).toBe(3)
    await hold(db, claimed.slice(3))

    const newcomer = await ask(db, TEN_A_SECOND, { fresh: 1 })
    expect(newcomer.given).toBe(0)
    expect(Math.round(newcomer.turnAt - newcomer.now)).toBe(612) // after the three that are held
    expect(await letGo(db)).toMatchObject({ queues: [] })

    clock.advance(210)
    expect(await letGo(db)).toMatchObject({ queues: ['mail'] })
    const [first, ...others] = await take(db, session)
    expect(others.map(({ id }) => id)).toEqual([jobs[4]?.id])
    expect(first).toMatchObject({ id: jobs[3]?.id, holds: 1, attempt: 1, heldBy: heldByRate('mail', 'acme') })
    expect((await ask(db, TEN_A_SECOND, { released: 2, fresh: 1 })).given).toBe(2)

    clock.advance(75)
    expect(await letGo(db)).toMatchObject({ queues: [] })
    clock.advance(200)
    expect(await letGo(db)).toMatchObject({ queues: ['mail'] })
    expect((await take(db, session)).map(({ id }) => id)).toEqual([jobs[5]?.id])
  })

  it('does not let more go than can start, however long nobody takes them', async () => {
    const { db, clock } = await open({ now: NOON })
    const session = await aSession(db)
    await enqueue(
      db,
      Array.from({ length: 20 }, () => aJob()),
      null,
    )
    await ask(db, TEN_A_SECOND, { fresh: 20 })
    await hold(db, await take(db, session))
    for (let look = 0; look < 20; look += 1) {
      clock.advance(100)
      await letGo(db)
    }
    expect((await claim(db, session, [{ queue: 'mail', name: 'send', limit: 100 }], 100)).length).toBeLessThanOrEqual(3)
  })

  it('lets a job that nobody let go come back to its old place in line', async () => {
    const { db, clock } = await open({ now: NOON })
    const session = await aSession(db)
    const [held, later] = [aJob(), aJob()]
    await enqueue(db, [held], null)
    await hold(db, await take(db, session), 5_000)
    await enqueue(db, [later], null)
    clock.advance(5_000)
    await promote(db, 10, null)
    const [first, second] = await take(db, session)
    expect([first?.id, second?.id]).toEqual([held.id, later.id])
    expect(first?.heldBy).toBeUndefined()
  })

  it('forgets the total time of a job that never started', async () => {
    const { db, clock } = await open({ now: NOON })
    const session = await aSession(db)
    await enqueue(db, [aJob()], null)
    await hold(db, await take(db, session), 5_000)
    clock.advance(5_000)
    await promote(db, 10, null)
    const [job] = await take(db, session)
    expect(job?.firstClaimedAt).toBe(job?.claimedAt)
  })

  it('follows what a person sets, for all keys or for one, at once', async () => {
    const { db, clock } = await open({ now: NOON })
    const hourly = paceOf({ limit: 1, intervalMs: 3_600_000, burst: 1 })
    await ask(db, hourly, { fresh: 1 }, 'a')
    await ask(db, hourly, { fresh: 1 }, 'b')
    const often = { limit: 100, intervalMs: 1_000, burst: 1 }
    await setRateLimit(db, { name: 'mail', key: '' }, often, paceOf(often), 'ada')
    const seldom = { limit: 1, intervalMs: 1_000, burst: 1 }
    await setRateLimit(db, { name: 'mail', key: 'b' }, seldom, paceOf(seldom), 'ada')
    await followRateLimit(db, 'mail', '', AHEAD.horizonMs)
    clock.advance(300)
    expect((await ask(db, hourly, { fresh: 5 }, 'a')).given).toBe(5)
    expect((await ask(db, hourly, { fresh: 5 }, 'b')).given).toBe(0)
    clock.advance(1_000)
    expect((await ask(db, hourly, { fresh: 5 }, 'b')).given).toBe(1)
    expect((await rateLimitStates(db, { limit: 10 })).map(({ name, key, held }) => ({ name, key, held }))).toEqual([
      { name: 'mail', key: 'a', held: 0 },
      { name: 'mail', key: 'b', held: 0 },
    ])
  })

  it('forgets keys that were not used for long, and have nothing left to remember', async () => {
    const { db, clock } = await open({ now: NOON })
    await ask(db, TEN_A_SECOND, { fresh: 1 }, 'old')
    await ask(db, paceOf({ limit: 1, intervalMs: 86_400_000, burst: 1 }), { fresh: 1 }, 'daily')
    clock.advance(3_700_000)
    await ask(db, TEN_A_SECOND, { fresh: 1 }, 'new')
    expect(await forgetRates(db, 3_600_000, 100)).toBe(1)
    expect((await rateLimitStates(db, { limit: 10 })).map(({ key }) => key)).toEqual(['daily', 'new'])
  })
})
