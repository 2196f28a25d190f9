// pitfall 24 at the groups: however many dead letters and counts there are, a look at groups reads few of them, by an index,
// whether the tables were ever analyzed or not. Rows are counted, not time.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { getGroup, listGroups } from '../../src/ledger/group.js'
import { groupDetail } from '../../src/ledger/group-detail.js'
import { makeGroups, noticeFailures } from '../../src/ledger/group-notice.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'
import { explaining } from '../support/explaining.js'

const GROUPS = 2_000
const LETTERS = 60_000

const LARGE = ['dead_letter', 'failure_tally', 'attempt', 'job']

const FILL_LETTERS = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, outcome, kind, queue, name, payload, reason, message, fingerprint, tenant)
  SELECT gen_random_uuid(), g, timestamptz '2030-01-01' + g * interval '1 second', now(), now(), 1, 0, 0, 5, 'failed',
    'network', 'mail', 'send', '{}', 'over', 'm', CASE WHEN g % 2 = 0 THEN 'v1:0' ELSE 'v1:' || g % $2::integer END, 't' || g % 9
  FROM generate_series(1, $1::integer) g`
const FILL_TALLY = sql`
  INSERT INTO redrive.failure_tally (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at, first_job,
    sample_job)
  SELECT 'v1:' || g, 'mail', 'send', '', timestamptz '2030-01-01' + b * interval '5 minutes', 0, 3, 1,
    timestamptz '2030-01-01' + b * interval '5 minutes', gen_random_uuid(), gen_random_uuid()
  FROM generate_series(0, $1::integer - 1) g, generate_series(1, 20) b`

describe.each(['never analyzed', 'analyzed'] as const)('pitfall 24: 2,000 groups, 60,000 dead letters, %s', state => {
  let db: Database
  beforeFirst(async () => {
    db = (await freshDatabase('server')).db
    for (const table of LARGE) await db.query({ text: `ALTER TABLE redrive.${table} SET (autovacuum_enabled = false)` })
    await db.query(FILL_LETTERS, [LETTERS, GROUPS])
    await db.query(FILL_TALLY, [GROUPS])
    await makeGroups(db)
    if (state === 'analyzed') for (const table of LARGE) await db.query({ text: `ANALYZE redrive.${table}` })
  })

  it.each<[string, most: number, (db: Database) => Promise<unknown>]>([
    ['a page by what failed last', 15_000, db => listGroups(db, {}, { limit: 50, sort: 'lastSeen' })],
    ['a page by what failed most', 15_000, db => listGroups(db, {}, { limit: 50, sort: 'failures' })],
    ['a page of a queue', 20_000, db => listGroups(db, { queue: 'mail' }, { limit: 50, sort: 'lastSeen' })],
    ['the largest group', 15_000, db => getGroup(db, 'v1:0')],
    ['all that is known of it', 5_000, db => groupDetail(db, 'v1:0')],
    ['a failure that is noticed', 500, db => noticeFailures(db, ['v1:7'])],
  ])('%s', async (_what, most, look) => {
    const desk = explaining(db, LARGE)
    await look(desk.db)
    expect(desk.scanned()).toEqual([])
    expect(desk.rows()).toBeLessThan(most)
  })
})
