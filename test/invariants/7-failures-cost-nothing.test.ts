// Invariant 7: failures cost nothing to live work. What has ended, died or failed is off the claim table, and the pages
// that a claim touches do not grow with what is scheduled, retrying, dead or done. Pages are counted, not time.
//
// Seen to fail: with job_claimable without its WHERE clause, a claim beside 100,000 jobs of each sort; with job_due on
// run_at alone, a promotion, which then sorts all that is due.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { promote } from '../../src/ledger/promote.js'
import { settle } from '../../src/ledger/settle.js'
import { freshDatabase } from '../support/databases.js'
import { countingBuffers, EMBEDDED_AND_SERVER, rowsOf, vacuum } from '../support/ledger-state.js'
import { buried, cancelled, completed } from '../support/settlements.js'
import { aJob, aSession, take } from '../support/story.js'

const FILL = sql`
  INSERT INTO redrive.job (id, in_line, state, queue, name, payload, run_at, created_at, attempt)
  SELECT gen_random_uuid(), $2 = 'waiting', $2::redrive.job_state, 'mail', 'send', '{}', now() + $3::interval, now(), 1
  FROM generate_series(1, $1::integer)`

const CLAIMED = 50
/** Other pages of the same few: an index grows a level, a page is split. Far below what reading the rest would cost. */
const SLACK = 1.5

async function buffersOf(db: Database, act: (db: Database) => Promise<unknown>): Promise<number> {
  const counting = countingBuffers(db)
  await act(counting.db)
  return counting.touched()
}

describe.each(EMBEDDED_AND_SERVER)('invariant 7: what has ended is off the claim table ($name)', ({ open }) => {
  it('completed, cancelled and dead jobs leave it in the statement that ends them', async () => {
    const { db } = await open()
    const jobs = [aJob(), aJob(), aJob(), aJob()]
    await enqueue(db, jobs, null)
    const [a, b, c] = await take(db, await aSession(db), 3)
    if (!a || !b || !c) throw new Error('there were four')
    await settle(db, [completed(a), cancelled(b), buried(c)], '16')
    expect(await rowsOf(db, 'job')).toMatchObject([{ id: jobs[3]?.id, state: 'waiting' }])
  })
})

describe('invariant 7: the pages a statement touches do not grow with what waits for its time', () => {
  async function beside(state: 'retrying' | 'scheduled' | 'held', many: number) {
    const { db } = await freshDatabase('server')
    await db.query(sql`ALTER TABLE redrive.job SET (autovacuum_enabled = false)`)
    await db.query(FILL, [many, state, '1 hour'])
    await db.query(FILL, [1_000, 'waiting', '0'])
    await vacuum(db)
    const session = await aSession(db, 3_600_000)
    // The first claim of a connection also reads the catalog.
    await take(db, session, 1)
    return { db, session }
  }

  it.each(['retrying', 'scheduled', 'held'] as const)('claiming beside 100,000 that are %s', async state => {
    const [few, many] = [await beside(state, 100), await beside(state, 100_000)]
    const alone = await buffersOf(few.db, db => take(db, few.session, CLAIMED))
    const crowded = await buffersOf(many.db, db => take(db, many.session, CLAIMED))
    expect(crowded).toBeLessThan(alone * SLACK)
  })

  it('promoting when 100,000 are due at once', async () => {
    const due = async (many: number) => {
      const { db } = await freshDatabase('server')
      await db.query(sql`ALTER TABLE redrive.job SET (autovacuum_enabled = false)`)
      await db.query(FILL, [many, 'retrying', '-1 hour'])
      await vacuum(db)
      return buffersOf(db, counted => promote(counted, CLAIMED, null))
    }
    expect(await due(100_000)).toBeLessThan((await due(1_000)) * SLACK)
  })
})
