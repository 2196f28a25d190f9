// The counts of dead letters are kept as they change. Whatever is done to letters, by whomever, at once or one after the other,
// rolled back or not: the counts are those that counting gives. Seen red: without the trigger of each of the three.
import { expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { annotate } from '../../src/ledger/dead-letter-change.js'
import { deadLetterCounts, foldLetterCounts } from '../../src/ledger/dead-letter-count.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { migrate, readMigrations } from '../../src/ledger/migrate.js'
import { redrive } from '../../src/ledger/redrive.js'
import { expireDeadLetters } from '../../src/ledger/retention.js'
import { inSchema } from '../../src/ledger/schema-name.js'
import { settle } from '../../src/ledger/settle.js'
import { DATABASES, freshDatabase } from '../support/databases.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aFailure, aJob, aSession, buried, completed, take } from '../support/story.js'
import { until } from '../support/until.js'

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

/** So many jobs, claimed. */
async function claimed(db: Database, count: number): Promise<ClaimedJob[]> {
  const session = await aSession(db)
  await enqueue(
    db,
    Array.from({ length: count }, () => aJob()),
    null,
  )
  return take(db, session, count)
}

/** They die, of two kinds. */
async function die(db: Database, jobs: readonly ClaimedJob[]) {
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
  const ids = await die(db, await claimed(db, 5))
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
  // One after the other: of those that claim at once, one may find all it sees taken by another, and come away with fewer.
  const dying: ClaimedJob[][] = []
  for (const other of others) dying.push(await claimed(other, 40))
  const died = await Promise.all(others.map((other, nth) => die(other, dying[nth] ?? [])))
  await Promise.all(died.map((ids, nth) => redrive(others[(nth + 1) % 4] ?? db, ids.slice(0, 20), null)))
  const undone = db.transaction(async tx => {
    await redrive(tx as unknown as Database, died.flat().slice(100), null)
    throw new Error('undone')
  })
  await expect(undone).rejects.toThrow('undone')
  expect(await expectTrue(db)).toBe(160)
  await Promise.all(others.map(other => other.close()))
  // Ten of those that came back die again.
  const again = await claimed(db, 10)
  await Promise.all([foldLetterCounts(db), die(db, again), foldLetterCounts(db)])
  expect(await expectTrue(db)).toBe(160)
  expect((await db.query(SHARDS)).length).toBeLessThanOrEqual(11)
})

const REMEMBER = sql`INSERT INTO redrive.migration (version, name, checksum) VALUES ($1, $2, $3)`
const APPLIED = sql`SELECT version FROM redrive.migration WHERE version > 10 ORDER BY version`
const LETTERS = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives, job_priority, status,
    resolved_at, outcome, kind, queue, name, payload, reason, message, fingerprint)
  SELECT gen_random_uuid(), g, now(), now(), now(), 1, 0, 0, 5,
    CASE WHEN g % 4 = 0 THEN 'recovered' ELSE 'pending' END::redrive.recovery_status, CASE WHEN g % 4 = 0 THEN now() END, 'failed',
    CASE WHEN g % 3 = 0 THEN 'network' ELSE 'transient' END::redrive.failure_kind, 'queue ' || g % 5, 'send', '{}', 'over', 'm',
    'v1:busy' FROM generate_series(1, $1::integer) g`
const HAS_INDEX = sql`SELECT to_regclass('redrive.dead_letter_counts') IS NOT NULL AS there`
const WAITING = sql`
  SELECT count(*)::integer AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

const waits = (db: Database) =>
  until('the migration waits', async () => (await db.query<{ waiting: number }>(WAITING))[0]?.waiting === 1)
const applied = async (db: Database) => (await db.query<{ version: number }>(APPLIED)).map(({ version }) => version)

/** As it was before letters were counted. */
async function migrateToTen(db: Database): Promise<void> {
  await db.transaction(async tx => {
    await tx.execute(inSchema('CREATE SCHEMA "redrive_schema_name"', db.schema))
    await tx.execute(
      inSchema(
        `CREATE TABLE redrive.migration (
           version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
         )`,
        db.schema,
      ),
    )
    for (const { version, name, text, checksum } of await readMigrations()) {
      if (version > 10) continue
      await tx.execute(inSchema(text, db.schema))
      await tx.query(REMEMBER, [version, name, checksum])
    }
  })
}

it.each(EMBEDDED_AND_SERVER)('of letters that were there before they were counted: $name', async ({ open }) => {
  const { db } = await open({ migrated: false })
  await migrateToTen(db)
  await db.query(LETTERS, [100])
  expect(await db.query(HAS_INDEX)).toEqual([{ there: true }])
  expect((await migrate(db)).slice(0, 2)).toEqual(['0011_letter_counts.sql', '0012_counts_index.sql'])
  expect(await expectTrue(db)).toBe(100)
  expect(await db.query(HAS_INDEX)).toEqual([{ there: false }])
  await die(db, await claimed(db, 4))
  expect(await expectTrue(db)).toBe(104)
  await db.query(sql`DELETE FROM redrive.dead_letter WHERE queue = 'queue 1'`)
  await foldLetterCounts(db)
  expect(await expectTrue(db)).toBe(84)
})

it('of a letter that is being written while its table is migrated', async () => {
  const { db, another } = await freshDatabase('server', { migrated: false })
  await migrateToTen(db)
  await db.query(LETTERS, [10])
  let migrating: Promise<unknown> | undefined
  await db.transaction(async tx => {
    await tx.query(LETTERS, [5])
    migrating = migrate(another())
    migrating.catch(() => {})
    await waits(db)
  })
  await migrating
  expect(await expectTrue(db)).toBe(15)
})

it('while somebody reads letters: they are counted already, and only the index waits', async () => {
  const { db, another } = await freshDatabase('server', { migrated: false })
  await migrateToTen(db)
  await db.query(LETTERS, [10])
  let migrating: Promise<unknown> | undefined
  await db.transaction(async reader => {
    await reader.query(COUNTED)
    migrating = migrate(another())
    migrating.catch(() => {})
    await waits(db)
    expect(await applied(db)).toEqual([11])
    expect((await deadLetterCounts(db)).reduce((sum, { count }) => sum + count, 0)).toBe(10)
  })
  await migrating
  expect((await applied(db)).slice(0, 2)).toEqual([11, 12])
  expect(await expectTrue(db)).toBe(10)
})
