// pitfall 14: snoozes and rescues corrupt the attempt count (River, Oban). Our rule: separate counters.
//
// Seen to fail: with `refund` left out of DEFER, a snooze spends an attempt; with `lost` left out, the losses are not seen.
import { describe, expect, it } from 'vitest'
import { attemptsOf } from '../../src/ledger/attempt.js'
import { orphans } from '../../src/ledger/claim.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { promote } from '../../src/ledger/promote.js'
import { lapseSessions, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { settle } from '../../src/ledger/settle.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { givenBack, held, interrupted, lost, retried, snoozed } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

describe.each(EMBEDDED_AND_SERVER)('pitfall 14: only attempts count as attempts ($name)', ({ open }) => {
  it('a job that is snoozed a hundred times is still on its first attempt', async () => {
    const { db, clock } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const job = aJob()
    await enqueue(db, [job], null)
    const session = await aSession(db, 3_600_000)
    for (let times = 0; times < 100; times += 1) {
      const claimed = await take(db, session)
      expect(claimed).toMatchObject([{ attempt: 1, snoozes: times }])
      await settle(
        db,
        claimed.map(one => snoozed(one, 1_000)),
        '16',
      )
      clock.advance(1_000)
      await promote(db, 10, null)
    }
    expect(await findJob(db, job.id)).toMatchObject({ attempt: 0, snoozes: 100, lost: 0 })
  })

  it('every other way back has a counter of its own, and the next attempt has the right number', async () => {
    const { db, clock } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const job = aJob()
    await enqueue(db, [job], null)
    const session = await aSession(db, 3_600_000)
    for (const end of [interrupted, held, givenBack, retried, snoozed, interrupted, givenBack, held]) {
      await settle(
        db,
        (await take(db, session)).map(one => end(one)),
        '16',
      )
      clock.advance(60_000)
      await promote(db, 10, null)
    }
    const counters = { attempt: 2, snoozes: 1, holds: 2, interruptions: 2, lost: 0 }
    expect(await take(db, session)).toMatchObject([counters])
  })

  it('a rescue is counted as a loss, and its attempt was spent', async () => {
    const { db } = await open()
    const job = aJob()
    await enqueue(db, [job], null)
    for (let losses = 0; losses < 3; losses += 1) {
      const dying = await aSession(db)
      expect(await take(db, dying)).toMatchObject([{ attempt: losses + 1, lost: losses, snoozes: 0 }])
      await renewSession(db, dying, -1)
      await lapseSessions(db)
      await settle(
        db,
        (await orphans(db, await sessionsToSearch(db), 10)).map(orphan => lost(orphan)),
        '16',
      )
    }
    expect(await findJob(db, job.id)).toMatchObject({ state: 'waiting', attempt: 3, lost: 3, interruptions: 0 })
    expect((await attemptsOf(db, job.id)).map(({ number, outcome }) => [number, outcome])).toEqual([
      [1, 'lost'],
      [2, 'lost'],
      [3, 'lost'],
    ])
  })
})
