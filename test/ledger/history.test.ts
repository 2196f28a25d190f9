// The history: a partition a day, made ahead, dropped whole, and counts that stay right whatever happens to it.
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { ensureQueues, queueStatistics } from '../../src/ledger/queue.js'
import { cleanFinished, dropHistory, ensureHistoryDays } from '../../src/ledger/retention.js'
import { endSession } from '../../src/ledger/session.js'
import { settlingShard } from '../../src/ledger/settle/tally.js'
import { settle } from '../../src/ledger/settle.js'
import { DATABASES, freshDatabase } from '../support/databases.js'
import { aJob, aSession, cancelled, completed, take } from '../support/story.js'

const NOON = '2026-03-10T12:00:00.000Z'
const DAY_MS = 86_400_000

const PARTITIONS = sql`
  SELECT c.relname AS name FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
  WHERE i.inhparent = to_regclass('redrive.finished_job') ORDER BY c.relname`
const ROWS = sql`
  SELECT f.tableoid::regclass::text AS part, count(*)::integer AS jobs FROM redrive.finished_job f GROUP BY 1 ORDER BY 1`

const partitions = async (db: Database) => (await db.query<{ name: string }>(PARTITIONS)).map(row => row.name)

/** How many jobs are in each partition, by the end of its name. */
const rows = async (db: Database) =>
  Object.fromEntries(
    (await db.query<{ part: string; jobs: number }>(ROWS)).map(row => [
      row.part.replace(/.*finished_job_/, ''),
      row.jobs,
    ]),
  )

/** Runs `count` jobs to their end, now. */
async function finish(
  db: Database,
  count: number,
  end: (job: ClaimedJob) => Settlement = job => completed(job),
): Promise<void> {
  await ensureQueues(db, ['mail'])
  const session = await aSession(db)
  await enqueue(
    db,
    Array.from({ length: count }, () => aJob()),
    null,
  )
  const refused = await settle(
    db,
    (await take(db, session)).map(job => end(job)),
    settlingShard(session, 0),
  )
  expect(refused).toEqual([])
  await endSession(db, session)
}

const counts = async (db: Database) => {
  const [mail] = await queueStatistics(db)
  return { completed: mail?.completed, cancelled: mail?.cancelled }
}

describe.each(DATABASES.filter(({ kind }) => kind !== 'disk'))('$name', ({ open }) => {
  it('makes the days ahead, once, and finished jobs go to their day', async () => {
    const { db } = await open({ now: NOON })
    await ensureHistoryDays(db, 2)
    await ensureHistoryDays(db, 2)
    expect(await partitions(db)).toEqual([
      'finished_job_20260310',
      'finished_job_20260311',
      'finished_job_20260312',
      'finished_job_default',
    ])
    await finish(db, 3)
    expect(await rows(db)).toEqual({ '20260310': 3 })
  })

  it('a day ends at midnight UTC, whatever time zone the connection speaks', async () => {
    const { db, clock } = await open({ now: '2026-03-10T23:59:59.999Z' })
    await db.transaction(async tx => {
      await tx.execute("SET LOCAL timezone = 'Pacific/Auckland'")
      await ensureHistoryDays(tx, 1)
    })
    await finish(db, 1)
    clock.advance(1)
    await finish(db, 2)
    expect(await rows(db)).toEqual({ '20260310': 1, '20260311': 2 })
  })

  it('a day whose partition is missing is caught by the default one, and its later partition waits', async () => {
    const { db, clock } = await open({ now: NOON })
    await finish(db, 2)
    expect(await rows(db)).toEqual({ default: 2 })
    await ensureHistoryDays(db, 1)
    expect(await partitions(db), 'today has rows in the default partition').toEqual([
      'finished_job_20260311',
      'finished_job_default',
    ])
    clock.advance(DAY_MS)
    await finish(db, 1)
    expect(await rows(db)).toEqual({ '20260311': 1, default: 2 })
  })

  it('retention drops whole days and the strays of the default partition, and tells how many jobs', async () => {
    const { db, clock } = await open({ now: NOON })
    await finish(db, 5) // strays: no partition yet
    clock.advance(DAY_MS)
    await ensureHistoryDays(db, 20)
    await finish(db, 3)
    clock.advance(DAY_MS)
    await finish(db, 2)
    await finish(db, 1, cancelled)
    expect(await counts(db)).toEqual({ completed: 10, cancelled: 1 })

    expect(await dropHistory(db, 7, 100), 'nothing is old yet').toBe(0)
    expect(await counts(db)).toEqual({ completed: 10, cancelled: 1 })

    clock.advance(7 * DAY_MS) // the 12th is the seventh day before today
    expect(await dropHistory(db, 7, 2)).toBe(8)
    expect(await rows(db)).toEqual({ '20260312': 3 })
    expect(await partitions(db)).not.toContain('finished_job_20260311')
    expect(await counts(db)).toEqual({ completed: 2, cancelled: 1 })

    clock.advance(30 * DAY_MS)
    expect(await dropHistory(db, 7, 100)).toBe(3)
    expect(await rows(db)).toEqual({})
    expect(await counts(db)).toEqual({ completed: 0, cancelled: 0 })
  })

  it('cleaning a queue takes what was asked and leaves the counts right', async () => {
    const { db, clock } = await open({ now: NOON })
    await ensureHistoryDays(db, 0)
    await finish(db, 4)
    await finish(db, 2, cancelled)
    clock.advance(60_000)
    await finish(db, 1)
    expect(await cleanFinished(db, 'another', 'completed', 0, 100)).toEqual({ removed: 0, next: undefined })
    const first = await cleanFinished(db, 'mail', 'completed', 30_000, 3)
    expect(first, 'of the first three').toEqual({ removed: 3, next: expect.any(String) })
    expect(await cleanFinished(db, 'mail', 'completed', 30_000, 100, first.next), 'of the rest').toEqual({
      removed: 1,
      next: undefined,
    })
    expect(await counts(db)).toEqual({ completed: 1, cancelled: 2 })
    expect(await cleanFinished(db, 'mail', 'cancelled', 0, 100)).toMatchObject({ removed: 2 })
    expect(await rows(db)).toEqual({ '20260310': 1 })
    expect(await counts(db)).toEqual({ completed: 1, cancelled: 0 })
  })
})

describe('on a server', () => {
  it('many processes make the same days at once: each day is made once, and nobody fails', async () => {
    const { db, another } = await freshDatabase('server', { now: NOON })
    await Promise.all(Array.from({ length: 6 }, () => ensureHistoryDays(another({ poolSize: 1 }), 5)))
    expect(await partitions(db)).toHaveLength(7)
  })

  it('a day that is being read is dropped another time, and stays counted until then', async () => {
    const { db, clock, another } = await freshDatabase('server', { now: NOON })
    await ensureHistoryDays(db, 0)
    await finish(db, 3)
    clock.advance(10 * DAY_MS)
    await another().transaction(async reader => {
      await reader.query(ROWS)
      expect(await dropHistory(db, 7, 100)).toBe(0)
      expect(await counts(db)).toEqual({ completed: 3, cancelled: 0 })
    })
    expect(await dropHistory(db, 7, 100)).toBe(3)
    expect(await rows(db)).toEqual({})
    expect(await counts(db)).toEqual({ completed: 0, cancelled: 0 })
  })

  it('making a day does not wait for a reader of the history for long', async () => {
    const { db, another } = await freshDatabase('server', { now: NOON })
    await another().transaction(async reader => {
      await reader.query(ROWS)
      await ensureHistoryDays(db, 0)
      expect(await partitions(db)).toEqual(['finished_job_default'])
    })
    await ensureHistoryDays(db, 0)
    expect(await partitions(db)).toContain('finished_job_20260310')
  })
})
