// pitfall 1: a stalled worker's late "complete" closes someone else's attempt (pg-boss, River, Oban, graphile complete by
// id or state only). Our rule: a never-repeated lease on every write; 0 rows = you lost it.
//
// Seen to fail: with FENCED matching id and state alone, the stalled worker closes the other's attempt.
import { describe, expect, it } from 'vitest'
import { orphans } from '../../src/ledger/claim.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { lapseSessions, sessionsToSearch } from '../../src/ledger/session.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { completed, lost, retried } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

const LEASE_MS = 15_000

describe.each(EMBEDDED_AND_SERVER)('pitfall 1: a late "complete" closes nobody else\'s attempt ($name)', ({ open }) => {
  it('the worker stalls, its job runs elsewhere, and its late success is refused', async () => {
    const { db, clock } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const job = aJob()
    await enqueue(db, [job], null)
    const stalled = await take(db, await aSession(db, LEASE_MS))

    clock.advance(LEASE_MS + 1)
    await lapseSessions(db)
    await settle(
      db,
      (await orphans(db, await sessionsToSearch(db), 10)).map(orphan => lost(orphan)),
      '16',
    )
    const running = await take(db, await aSession(db, LEASE_MS))
    expect(running).toMatchObject([{ id: job.id, attempt: 2 }])

    const late = stalled.map(claimed => completed(claimed, 'mine'))
    expect(await settle(db, late, '16')).toEqual(late)
    expect(await findJob(db, job.id)).toMatchObject({ state: 'active', attempt: 2 })
    expect(
      await settle(
        db,
        running.map(claimed => completed(claimed, 'theirs')),
        '16',
      ),
    ).toEqual([])
    expect(await findJob(db, job.id)).toMatchObject({ state: 'completed', result: 'theirs' })
  })

  it('even when the same worker has the job again: it is the claim that counts, not the worker', async () => {
    const { db } = await open()
    const job = aJob()
    await enqueue(db, [job], null)
    const session = await aSession(db)
    const first = await take(db, session)
    await settle(
      db,
      first.map(claimed => retried(claimed)),
      '16',
    )
    await take(db, session)
    const late = first.map(claimed => completed(claimed))
    expect(await settle(db, late, '16')).toEqual(late)
    expect(await findJob(db, job.id)).toMatchObject({ state: 'active', attempt: 2 })
  })
})
