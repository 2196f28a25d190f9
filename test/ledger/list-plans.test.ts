// pitfall 24 at the rest of the desk: pages of jobs, the counts of dead letters, one letter, and what fails most. However
// many jobs there are, live, finished and dead, each is read by an index and no further than it says, whether the tables
// were ever analyzed or not. Rows are counted, not time.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { attemptsOf } from '../../src/ledger/attempt.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { getDeadLetter, listDeadLetters } from '../../src/ledger/dead-letter.js'
import { deadLetterCounts } from '../../src/ledger/dead-letter-count.js'
import { type JobFilter, listJobs } from '../../src/ledger/job-list.js'
import { queueStatistics } from '../../src/ledger/queue.js'
import { failureReasons } from '../../src/ledger/statistics.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'
import { explaining } from '../support/explaining.js'

const EACH = 20_000
/** What a page of jobs may look at, in each of the three tables, and once more to count. */
const MOST_LOOKED_AT = 2 * 3 * 5_000 + 100

// Ids begin with the time, as real ones do; the three kinds of jobs were made side by side.
const ID = `(lpad(to_hex(1700000000000 + g * 3 + $2::integer), 12, '0') || '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid`
const QUEUE = `CASE WHEN g % 10000 = 7 THEN 'rare' ELSE 'mail' END`
const NUMBERS = `generate_series(1, $1::integer) g`

const JOBS = sql`
  INSERT INTO redrive.job (id, in_line, state, queue, name, tenant, payload, run_at, created_at)
  SELECT ${ID}, g % 2 = 0, CASE WHEN g % 2 = 0 THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, ${QUEUE}, 'send', 't' || g % 9,
    '{}', now(), now() FROM ${NUMBERS}`
const FINISHED = sql`
  INSERT INTO redrive.finished_job (id, finished_at, created_at, attempt, snoozes, holds, interruptions, lost, redrives, priority, state,
    queue, name, tenant, payload)
  SELECT ${ID}, now() - g % 3 * interval '1 day', now(), 1, 0, 0, 0, 0, 0, 5,
    CASE WHEN g % 100 = 0 THEN 'cancelled' ELSE 'completed' END::redrive.job_state, ${QUEUE}, 'send', 't' || g % 9, '{}' FROM ${NUMBERS}`
const LETTERS = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives, job_priority, status,
    resolved_at, outcome, kind, queue, name, tenant, payload, reason, message, fingerprint)
  SELECT ${ID}, g, now() - g * interval '1 second', now(), now(), 1, 0, 0, 5,
    CASE WHEN g % 4 = 0 THEN 'recovered' ELSE 'pending' END::redrive.recovery_status, CASE WHEN g % 4 = 0 THEN now() END, 'failed',
    CASE WHEN g % 3 = 0 THEN 'network' ELSE 'transient' END::redrive.failure_kind, ${QUEUE}, 'send', 't' || g % 9, '{}', 'over', 'm',
    'v1:' || g % 50 FROM ${NUMBERS}`
const ATTEMPTS = sql`
  INSERT INTO redrive.attempt (job_id, lease, number, round, finished_at, outcome, decision, kind, queue, name, reason, because, message, fingerprint)
  SELECT ${ID}, g, 1, 0, now(), 'failed', 'bury', 'transient', 'mail', 'send', 'r', 'b', 'm', 'v1:' || g % 50 FROM ${NUMBERS}`
const CAUSES = sql`
  INSERT INTO redrive.failure_group (fingerprint, title, kind, first_seen, last_seen, failures, deaths, updated_at)
  SELECT 'v1:' || g, 't', 'transient', now(), now(), 1, 1, now() FROM generate_series(0, 49) g`
const SLICES = sql`
  INSERT INTO redrive.failure_tally (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at, first_job, sample_job, noticed)
  SELECT 'v1:' || g % 50, 'mail', 'send', '', bucket, 0, 1, 1, bucket, gen_random_uuid(), gen_random_uuid(), true
  FROM ${NUMBERS}, LATERAL (SELECT now() - g / 50 * interval '5 minutes' AS bucket) slice ON CONFLICT DO NOTHING`

const LARGE = ['job', 'finished_job', 'dead_letter', 'attempt', 'failure_tally']

const JOB_FILTERS: [string, JobFilter, matching: number | 'many'][] = [
  ['nothing', {}, 'many'],
  ['a live state', { state: 'waiting' }, 'many'],
  ['a live state that none has', { state: 'held' }, 0],
  ['a finished state', { state: 'completed' }, 'many'],
  ['dead', { state: 'dead' }, 'many'],
  ['a queue', { queue: 'mail' }, 'many'],
  ['a queue that is not there', { queue: 'nobody' }, 0],
  ['a queue and a state', { queue: 'mail', state: 'cancelled' }, 'many'],
  ['a name', { name: 'send' }, 'many'],
  ['a tenant', { tenant: 't3' }, 'many'],
]

describe.each(['never analyzed', 'analyzed'] as const)('pitfall 24: 20,000 jobs of each end, %s', state => {
  let db: Database
  let letter: JobId
  beforeFirst(async () => {
    db = (await freshDatabase('server')).db
    for (const table of ['job', 'finished_job_default', 'dead_letter', 'attempt', 'failure_tally']) {
      await db.query({ text: `ALTER TABLE redrive.${table} SET (autovacuum_enabled = false)` })
    }
    await db.query(
      sql`SELECT redrive.ensure_history_day((now() AT TIME ZONE 'UTC')::date - g) FROM generate_series(0, 1) g`,
    )
    for (const [nth, fill] of [JOBS, FINISHED, LETTERS].entries()) await db.query(fill, [EACH, nth])
    await db.query(ATTEMPTS, [EACH, 2])
    await db.query(CAUSES)
    await db.query(SLICES, [EACH])
    await db.query(sql`INSERT INTO redrive.queue (name) VALUES ('mail'), ('rare')`)
    if (state === 'analyzed') await db.query(sql`ANALYZE`)
    const [row] = await db.query<{ id: JobId }>(sql`SELECT id FROM redrive.dead_letter WHERE queue = 'rare' LIMIT 1`)
    letter = row?.id as JobId
  })

  it.each(JOB_FILTERS)('a page of jobs by %s, and the one after it', async (_what, filter, matching) => {
    const desk = explaining(db, LARGE)
    const first = await listJobs(desk.db, filter, { limit: 50 })
    expect(first.items).toHaveLength(matching === 'many' ? 50 : matching)
    expect(desk.reads.length).toBeGreaterThan(0)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(MOST_LOOKED_AT)
    if (first.nextCursor === undefined) return
    const next = explaining(db, LARGE)
    const second = await listJobs(next.db, filter, { limit: 50, after: first.nextCursor as JobId })
    expect(next.scanned()).toEqual([])
    expect(next.rows()).toBeLessThan(MOST_LOOKED_AT)
    const ids = [...first.items, ...second.items].map(({ id }) => id)
    expect(ids).toEqual([...new Set(ids)].sort().reverse())
  })

  it('the counts of dead letters: none of them is read', async () => {
    const desk = explaining(db, [...LARGE, 'dead_letter'])
    const counts = await deadLetterCounts(desk.db)
    expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(EACH)
    expect(
      counts.find(({ queue, status, kind }) => `${queue} ${status} ${kind}` === 'mail recovered network')?.count,
    ).toBe(1_666)
    expect(desk.reads.filter(read => read['Relation Name'] === 'dead_letter')).toEqual([])
  })

  it('the counts of queues: no dead letter is read for them', async () => {
    const desk = explaining(db, ['dead_letter'])
    const counted = await queueStatistics(desk.db)
    expect(desk.reads.filter(read => read['Relation Name'] === 'dead_letter')).toEqual([])
    expect(counted.map(({ queue, dead }) => [queue, dead])).toEqual([
      ['mail', 14_998],
      ['rare', 2],
    ])
  })

  it('one dead letter with its attempts', async () => {
    const desk = explaining(db, LARGE)
    expect((await getDeadLetter(desk.db, letter))?.queue).toBe('rare')
    expect(await attemptsOf(desk.db, letter)).toHaveLength(1)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(10)
  })

  it('a page far down, by its offset', async () => {
    const desk = explaining(db, LARGE)
    const { items } = await listDeadLetters(desk.db, {}, { limit: 50, offset: 10_000 })
    expect(items).toHaveLength(50)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(10_000 + 5_000 + 300)
  })

  it('what fails most', async () => {
    const desk = explaining(db, LARGE)
    const until = new Date(Date.now() + 60_000)
    const range = { since: new Date(until.getTime() - 86_400_000), until }
    const { items } = await failureReasons(desk.db, range, {}, 20)
    expect(items).toHaveLength(20)
    expect(desk.scanned()).toEqual([])
    // Each slice of the range once, and those of the causes that are told once more.
    expect(desk.rows()).toBeLessThan(EACH + EACH / 2)
  })
})
