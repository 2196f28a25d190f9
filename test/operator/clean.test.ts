// Cleaning a queue: however large the history and however few of it are the queue's, each statement looks at so many rows and no
// more; what is removed is removed, counted and audited once, however many clean at the same time.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { readAudit } from '../../src/ledger/audit.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { queueStatistics } from '../../src/ledger/queue.js'
import { cleanFinished } from '../../src/ledger/retention.js'
import { queues } from '../../src/operator/queues.js'
import { freshDatabase } from '../support/databases.js'
import { explaining } from '../support/explaining.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'

const NOW = '2030-03-10T12:00:00.000Z'
/** The last of them has no partition: its jobs are in the default one. */
const DAYS = 4

const MAKE_DAYS = sql`
  SELECT redrive.ensure_history_day(($1::timestamptz AT TIME ZONE 'UTC')::date - g) FROM generate_series(0, $2::integer - 2) g`
// Ids begin with the time, as real ones do. Jobs that were made one after the other ended on different days.
const FILL = sql`
  INSERT INTO redrive.finished_job (id, finished_at, created_at, attempt, snoozes, holds, interruptions, lost, redrives, priority, state,
    queue, name, payload)
  SELECT (lpad(to_hex(1700000000000 + g), 12, '0') || '7' || substr(md5(g::text), 1, 3) || '8' || substr(md5(g::text), 4, 15))::uuid,
    $1::timestamptz - (1 + g % $2::integer * 24) * interval '1 hour', $1::timestamptz, 1, 0, 0, 0, 0, 0, 5,
    CASE WHEN g % 10 = 0 THEN 'cancelled' ELSE 'completed' END::redrive.job_state,
    CASE WHEN g % 1001 = 7 THEN 'rare' ELSE 'mail' END, 'send', '{}' FROM generate_series(1, $3::integer) g`
const COUNT_FILLED = sql`
  INSERT INTO redrive.tally (queue, day, shard, completed, cancelled)
  SELECT queue, (finished_at AT TIME ZONE 'UTC')::date, 16, count(*) FILTER (WHERE state = 'completed'),
    count(*) FILTER (WHERE state = 'cancelled')
  FROM redrive.finished_job GROUP BY 1, 2`
const ADD_QUEUES = sql`INSERT INTO redrive.queue (name) VALUES ('mail'), ('rare')`
const COUNTED = sql`
  SELECT q.name AS queue, count(f.id) FILTER (WHERE state = 'completed')::integer AS completed,
    count(f.id) FILTER (WHERE state = 'cancelled')::integer AS cancelled
  FROM redrive.queue q LEFT JOIN redrive.finished_job f ON f.queue = q.name GROUP BY q.name ORDER BY q.name`

async function fill(db: Database, jobs: number): Promise<void> {
  await db.query(MAKE_DAYS, [NOW, DAYS])
  await db.query(FILL, [NOW, DAYS, jobs])
  await db.query(COUNT_FILLED)
  await db.query(ADD_QUEUES)
}

/** What the history holds, by counting; the counts that are kept say the same. */
async function history(db: Database): Promise<Record<string, [completed: number, cancelled: number]>> {
  const counted = await db.query<{ queue: string; completed: number; cancelled: number }>(COUNTED)
  expect(await queueStatistics(db)).toMatchObject(counted)
  return Object.fromEntries(counted.map(({ queue, completed, cancelled }) => [queue, [completed, cancelled]]))
}

const audited = async (db: Database, queue: string): Promise<number[]> =>
  (await readAudit(db, { targetType: 'queue', target: queue, limit: 100 })).map(
    ({ after }) => (after as { removed: number }).removed,
  )

const sum = (numbers: readonly number[]) => numbers.reduce((all, number) => all + number, 0)

describe.each(EMBEDDED_AND_SERVER)('12,000 jobs of four days: $name', ({ open }) => {
  const story = async () => {
    const { db, another } = await open({ now: NOW })
    await fill(db, 12_000)
    const desk = (at: Database) => queues({ db: at, wake: () => {} })
    return { db, desk, another }
  }

  it('a dozen of them are found, and nothing else is touched', async () => {
    const { db, desk } = await story()
    expect(await history(db)).toEqual({ mail: [10_789, 1_199], rare: [11, 1] })
    let transactions = 0
    const counting: Database = {
      ...db,
      transaction: work => {
        transactions += 1
        return db.transaction(work)
      },
    }
    expect(await desk(counting).clean('nobody', { status: 'completed', graceMs: 0 })).toEqual({ removed: 0 })
    expect(transactions, 'of 5,000 each').toBe(3)
    expect(await audited(db, 'nobody')).toEqual([])
    expect(await desk(db).clean('rare', { status: 'completed', graceMs: 0 })).toEqual({ removed: 11 })
    expect(await history(db)).toEqual({ mail: [10_789, 1_199], rare: [0, 1] })
    expect(sum(await audited(db, 'rare'))).toBe(11)
  })

  it('only what ended long enough ago, on whichever day', async () => {
    const { db, desk } = await story()
    const { removed } = await desk(db).clean('mail', { status: 'cancelled', graceMs: 30 * 3_600_000 })
    expect(removed, 'half of them ended yesterday or later').toBe(599)
    expect(await history(db)).toEqual({ mail: [10_789, 600], rare: [11, 1] })
  })

  it('three who clean at once remove each job once', async () => {
    const { db, desk, another } = await story()
    const cleaned = await Promise.all(
      [db, another(), another()].map(at => desk(at).clean('mail', { status: 'completed', graceMs: 0 })),
    )
    expect(sum(cleaned.map(({ removed }) => removed))).toBe(10_789)
    expect(sum(await audited(db, 'mail'))).toBe(10_789)
    expect(await history(db)).toEqual({ mail: [0, 1_199], rare: [11, 1] })
  })
})

describe.each(['never analyzed', 'analyzed'] as const)('pitfall 24: a history of 80,000 jobs, %s', state => {
  const BATCH = 5_000

  it.each([
    // Each batch is read once; what is removed of it is found by its ids, and told.
    ['a queue with a few of them', 'rare', BATCH + 100],
    ['a queue with nearly all of them', 'mail', 3 * BATCH + 100],
    ['a queue with none of them', 'nobody', BATCH + 100],
  ])('%s is cleaned by the index, a batch at a time', async (_what, queue, most) => {
    const { db } = await freshDatabase('server', { now: NOW })
    await fill(db, 80_000)
    if (state === 'analyzed') await db.query(sql`ANALYZE redrive.finished_job`)
    let after: JobId | undefined
    do {
      // Carried out twice, and the first time removes: how many is not to be seen here.
      const looking = explaining(db, ['finished_job'])
      after = (await cleanFinished(looking.db, queue, 'completed', 0, BATCH, after)).next
      expect(looking.reads.length).toBeGreaterThan(0)
      expect(looking.scanned()).toEqual([])
      expect(looking.rows()).toBeLessThan(most)
    } while (after !== undefined)
    expect((await history(db))[queue]?.[0] ?? 0).toBe(0)
  })
})
