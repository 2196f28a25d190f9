// pitfall 13: clock skew between machines, and ties of now() that make fresh jobs invisible (River's rescuer; pg-boss on
// PGlite). Our rule: the database's clock only; `<=`; a sequence breaks ties.
//
// Seen to fail: with `run_at < now` in PROMOTE and `due >= now` in INSERT, the ties; with ORDER BY without line, the order.
import { describe, expect, it, vi } from 'vitest'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { promote } from '../../src/ledger/promote.js'
import { lapseSessions } from '../../src/ledger/session.js'
import { freshDatabase } from '../support/databases.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aJob, aSession, take } from '../support/story.js'

const NOON = '2030-01-01T12:00:00.000Z'
const ids = (jobs: readonly { id: string }[]) => jobs.map(({ id }) => id)

describe.each(EMBEDDED_AND_SERVER)('pitfall 13: one clock, and no job lost in a tie ($name)', ({ open }) => {
  it('jobs of the very same instant are there at once, in the order they came', async () => {
    const { db } = await open({ now: NOON })
    const session = await aSession(db)
    const jobs = Array.from({ length: 30 }, () => aJob()).reverse()
    for (const job of jobs) await enqueue(db, [job], null)
    expect(ids(await take(db, session))).toEqual(ids(jobs))
  })

  it('a job that is due at this very instant is due', async () => {
    const { db, clock } = await open({ now: NOON })
    const jobs = [aJob({ runAt: NOON }), aJob({ delayMs: 0 }), aJob({ delayMs: 1_000 })]
    await enqueue(db, jobs, null)
    const session = await aSession(db)
    expect(ids(await take(db, session))).toEqual(ids(jobs.slice(0, 2)))
    clock.advance(1_000)
    expect(await promote(db, 10, null)).toMatchObject({ promoted: 1 })
    expect(ids(await take(db, session))).toEqual(ids(jobs.slice(2)))
  })

  it('a session whose lease ends at this very instant has not lapsed', async () => {
    const { db, clock } = await open({ now: NOON })
    await aSession(db, 1_000)
    clock.advance(1_000)
    expect(await lapseSessions(db)).toMatchObject({ lapsed: [] })
    clock.advance(1)
    expect((await lapseSessions(db)).lapsed).toHaveLength(1)
  })
})

describe('pitfall 13: on a server, a process whose own clock is off', () => {
  it('by years, changes nothing', async () => {
    const { db } = await freshDatabase('server-schema')
    const session = await aSession(db)
    const jobs = [aJob({ delayMs: 3_600_000 }), aJob()]
    vi.useFakeTimers({ now: new Date('2001-01-01'), toFake: ['Date'] })
    try {
      await enqueue(db, jobs, null)
      await promote(db, 10, null)
    } finally {
      vi.useRealTimers()
    }
    const [later, now] = jobs
    if (!later || !now) throw new Error('there are two')
    expect(ids(await take(db, session))).toEqual([now.id])
    const { createdAt, runAt } = (await findJob(db, later.id)) ?? {}
    expect(createdAt?.getUTCFullYear()).toBeGreaterThan(2001)
    expect(Number(runAt) - Number(createdAt)).toBe(3_600_000)
  })
})
