// The counts of dead letters are kept as they change. Whatever is done to letters, by whomever, at once or one after the other,
// rolled back or not: the counts are those that counting gives. Seen red: without the trigger of each of the three.
import { expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { annotate } from '../../src/ledger/dead-letter-change.js'
import { deadLetterCounts, foldLetterCounts } from '../../src/ledger/dead-letter-count.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { redrive } from '../../src/ledger/redrive.js'
import { expireDeadLetters } from '../../src/ledger/retention.js'
import { settle } from '../../src/ledger/settle.js'
import { DATABASES, freshDatabase } from '../support/databases.js'
import { aFailure, aJob, aSession, buried, completed, take } from '../support/story.js'

const COUNTED = sql`
  SELECT queue, status, kind, count(*)::integer AS count FROM redrive.dead_letter
  GROUP BY queue, status, kind ORDER BY queue, status, kind`
const SUMMARY = sql`SELECT sum(total_failed_jobs)::integer AS total FROM redrive.dead_letter_queue_summary`
const SHARDS = sql`SELECT DISTINCT shard FROM redrive.dead_letter_count`

async function expectTrue(db: Database): Promise<number> {
  const counted = await db.query<{ count: number }>(COUNTED)
  expect(await deadLetterCounts(db)).toEqual(counted)
  const [summary] = await db.query<{ total: number | null }>(SUMMARY)
  const total = counted.reduce((sum, { count }) => sum + count, 0)
  expect(summary?.total ?? 0).toBe(total)
  return total
}

/** So many jobs die, of two kinds. */
async function die(db: Database, count: number) {
  const session = await aSession(db)
  await enqueue(
    db,
    Array.from({ length: count }, () => aJob()),
    null,
  )
  const jobs = await take(db, session, count)
  const kinds = ['network', 'validation'] as const
  await settle(
    db,
    jobs.map((job, nth) => buried(job, aFailure({ kind: kinds[nth % 2] ?? 'network' }))),
    '0',
  )
  return jobs.map(({ id }) => id)
}

it.each(DATABASES)('through a whole life: $name', async ({ open }) => {
  const { db } = await open()
  expect(await deadLetterCounts(db)).toEqual([])
  const ids = await die(db, 5)
  expect(await expectTrue(db)).toBe(5)
  await annotate(db, ids[0] as JobId, { notes: 'mine' })
  await redrive(db, ids.slice(0, 3), null)
  await expectTrue(db)
  const back = await take(db, await aSession(db), 3)
  const [again, ...rest] = back
  if (!again) throw new Error('nothing came back')
  // One dies again, of another kind, and two recover.
  await settle(db, [buried(again, aFailure({ kind: 'system' })), ...rest.map(job => completed(job))], '0')
  expect(await expectTrue(db)).toBe(5)
  await expireDeadLetters(db, -1, 10)
  expect(await expectTrue(db)).toBe(3)
  await foldLetterCounts(db)
  expect(await expectTrue(db)).toBe(3)
})

it('by many connections at once, with some that are rolled back and some that are gone', async () => {
  const { db, another } = await freshDatabase('server')
  const others = Array.from({ length: 4 }, () => another())
  const died = await Promise.all(others.map(other => die(other, 40)))
  await Promise.all(died.map((ids, nth) => redrive(others[(nth + 1) % 4] ?? db, ids.slice(0, 20), null)))
  const undone = db.transaction(async tx => {
    await redrive(tx as unknown as Database, died.flat().slice(100), null)
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect(await expectTrue(db)).toBe(160)
  await Promise.all(others.map(other => other.close()))
  // Ten of those that came back die again.
  await Promise.all([foldLetterCounts(db), die(db, 10), foldLetterCounts(db)])
  expect(await expectTrue(db)).toBe(160)
  expect((await db.query(SHARDS)).length).toBeLessThanOrEqual(11)
})
