// Invariant 2: fenced. Every claim gives a lease that was never given before; every write about a running job matches
// it, and 0 rows means "you lost it": nothing changes but the note on the lost attempt.
//
// Seen to fail: with the lease taken out of FENCED, DEFER, MARK_STARTED or PROGRESS, the story of that write; with
// CANCEL joining by id alone, the one about two rows in the history; with the lease set to the attempt number, the last.
import { describe, expect, it } from 'vitest'
import { markStarted, orphans } from '../../src/ledger/claim.js'
import type { Database } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob, saveProgress } from '../../src/ledger/job.js'
import { lapseSessions, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { recordStale, settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER, everything, rowsOf } from '../support/ledger-state.js'
import { cancelled, completed, EVERY_END, givenBack, lost } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

const SHARD = '16'

describe.each(EMBEDDED_AND_SERVER)('invariant 2: fenced ($name)', ({ open }) => {
  /** A worker took the job and died; recovery gave it back; another worker has it. */
  async function takenOver() {
    const { db } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const job = aJob()
    await enqueue(db, [job], null)
    const dying = await aSession(db)
    const [stale] = await take(db, dying)
    await renewSession(db, dying, -1)
    await lapseSessions(db)
    await settle(
      db,
      (await orphans(db, await sessionsToSearch(db), 10)).map(orphan => lost(orphan)),
      SHARD,
    )
    const [fresh] = await take(db, await aSession(db))
    if (!stale || !fresh) throw new Error('both had it')
    return { db, id: job.id, stale, fresh }
  }

  const unchangedBy = async (db: Database, write: () => Promise<unknown>) => {
    const before = await everything(db)
    await write()
    expect(await everything(db)).toEqual(before)
  }

  it.each(Object.entries(EVERY_END))('a late %s changes not one row', async (_, end) => {
    const { db, stale } = await takenOver()
    const late = end(stale)
    await unchangedBy(db, async () => expect(await settle(db, [late], SHARD)).toEqual([late]))
  })

  it('late progress is refused', async () => {
    const { db, id, stale, fresh } = await takenOver()
    await unchangedBy(db, async () => expect(await saveProgress(db, id, stale.lease, '50')).toBe(false))
    expect(await saveProgress(db, id, fresh.lease, '60')).toBe(true)
    expect(await findJob(db, id)).toMatchObject({ progress: 60 })
  })

  it('a late start is refused', async () => {
    const { db, stale, fresh } = await takenOver()
    await unchangedBy(db, async () => expect(await markStarted(db, stale)).toBe(false))
    expect(await markStarted(db, fresh)).toBe(true)
  })

  it('an ended session cannot be renewed', async () => {
    const { db } = await open()
    const session = await aSession(db)
    await renewSession(db, session, -1)
    await lapseSessions(db)
    expect(await renewSession(db, session, 60_000)).toEqual({ renewed: false, cancelled: [] })
  })

  it('what came too late is noted on the lost attempt, and nowhere else', async () => {
    const { db, stale } = await takenOver()
    const before = await everything(db, ['attempt'])
    await recordStale(db, [completed(stale)])
    expect(await everything(db, ['attempt'])).toEqual(before)
    expect(await rowsOf(db, 'attempt')).toMatchObject([{ outcome: 'lost', stale_outcome: 'succeeded' }])
  })

  it.each([
    ['completed', completed],
    ['cancelled', cancelled],
  ] as const)('a late and a rightful end in one batch are one row in the history: %s', async (state, end) => {
    const { db, id, stale, fresh } = await takenOver()
    const late = end(stale)
    expect(await settle(db, [late, end(fresh)], SHARD)).toEqual([late])
    expect(await rowsOf(db, 'finished_job')).toMatchObject([{ id, state, attempt: 2 }])
  })

  it('a lease is never given twice, not even to the same job on the same attempt', async () => {
    const { db } = await open()
    await enqueue(db, [aJob()], null)
    const session = await aSession(db)
    const leases = new Set<string>()
    for (let claims = 1; claims <= 20; claims += 1) {
      const [job] = await take(db, session)
      if (!job) throw new Error('it was given back')
      expect(job.attempt).toBe(1)
      leases.add(job.lease)
      await settle(db, [givenBack(job)], SHARD)
    }
    expect(leases.size).toBe(20)
  })
})
