// Invariant 8 (and pitfall 5): open failures never expire; what is deleted leaves an audit row.
//
// Seen to fail: with the condition on resolved_at and status taken out of EXPIRE_DEAD_LETTERS, the first story finds no
// dead letter; with its `noted` CTE taken out, the second finds no audit.
import { describe, expect, it } from 'vitest'
import { readAudit } from '../../src/ledger/audit.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { markFailed } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { findJob } from '../../src/ledger/job.js'
import { redrive } from '../../src/ledger/redrive.js'
import { dropHistory, expireDeadLetters, forgetAttempts, forgetSessions } from '../../src/ledger/retention.js'
import { settle } from '../../src/ledger/settle.js'
import { deadLetters } from '../../src/operator/dead-letters.js'
import { EMBEDDED_AND_SERVER, rowsOf } from '../support/ledger-state.js'
import { buried, completed } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

const DAY_MS = 86_400_000
const KEPT_MS = 30 * DAY_MS

describe.each(EMBEDDED_AND_SERVER)('invariant 8: open failures never expire ($name)', ({ open }) => {
  async function withDead(count: number) {
    const { db, clock } = await open({ now: '2030-01-01T00:00:00.000Z' })
    const session = await aSession(db, 200 * 365 * DAY_MS)
    const jobs = Array.from({ length: count }, () => aJob())
    await enqueue(db, jobs, null)
    await settle(
      db,
      (await take(db, session)).map(job => buried(job)),
      '16',
    )
    return { db, clock, session, ids: jobs.map(job => job.id) }
  }

  it('an open dead letter is there after a hundred years of cleaning, with its attempts', async () => {
    const { db, clock, ids } = await withDead(1)
    for (let year = 0; year < 100; year += 10) {
      clock.advance(10 * 365 * DAY_MS)
      expect(await expireDeadLetters(db, KEPT_MS, 100)).toBe(0)
      expect(await forgetAttempts(db, KEPT_MS, 100)).toBe(0)
      await dropHistory(db, 7, 100)
      await forgetSessions(db, KEPT_MS, 100)
    }
    for (const id of ids) {
      expect(await getDeadLetter(db, id)).toMatchObject({ status: 'pending' })
      expect(await findJob(db, id)).toMatchObject({ state: 'dead' })
    }
    expect(await rowsOf(db, 'attempt')).toHaveLength(1)
  })

  it('a resolved one goes after its retention, not before, and its going is on record', async () => {
    const { db, clock, session, ids } = await withDead(3)
    const [recovered, closed, open] = ids
    if (!recovered || !closed || !open) throw new Error('there are three')
    await redrive(db, [recovered], null)
    await settle(
      db,
      (await take(db, session)).map(job => completed(job)),
      '16',
    )
    await markFailed(db, closed, 'nobody needs it')

    clock.advance(KEPT_MS)
    expect(await expireDeadLetters(db, KEPT_MS, 100)).toBe(0)
    clock.advance(1)
    expect(await expireDeadLetters(db, KEPT_MS, 100)).toBe(2)
    expect(await Promise.all(ids.map(id => getDeadLetter(db, id)))).toMatchObject([undefined, undefined, { id: open }])
    const [entry] = await readAudit(db, { targetType: 'queue', target: 'mail', limit: 10 })
    expect(entry).toMatchObject({ actor: 'retention', action: 'expire', after: { removed: 2 } })
  })

  it('one that a person removes leaves what it was', async () => {
    const { db, ids } = await withDead(1)
    const [id] = ids
    if (!id) throw new Error('there is one')
    await deadLetters({ db, wake: () => {} }).remove(id, { actor: 'ann', reason: 'a duplicate' })
    expect(await getDeadLetter(db, id)).toBeUndefined()
    expect(await readAudit(db, { targetType: 'dead_letter', target: id, limit: 10 })).toMatchObject([
      { actor: 'ann', action: 'remove', reason: 'a duplicate', before: { queue: 'mail', kind: 'permanent' } },
    ])
  })
})
