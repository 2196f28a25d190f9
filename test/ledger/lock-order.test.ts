// Whoever takes several unique keys takes them in the order of the keys, and whoever locks several letters in the order of their
// ids, not in the order in which they were asked for: two who want the same ones wait for each other one way only, and neither
// is thrown out of a deadlock. Places in line stay as asked.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { type Database, type Queryable, sql } from '../../src/ledger/database.js'
import { annotate } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { redrive } from '../../src/ledger/redrive.js'
import { settle } from '../../src/ledger/settle.js'
import { lookAgain } from '../../src/ledger/triage-letter.js'
import { freshDatabase } from '../support/databases.js'
import { EMBEDDED_AND_SERVER } from '../support/ledger-state.js'
import { aJob, aSession, buried, take } from '../support/story.js'
import { until } from '../support/until.js'

const WAITING = sql`
  SELECT count(*)::integer AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`
const LOOKED_AT = sql`
  SELECT count(notes)::integer AS notes, count(*)::integer AS letters FROM redrive.dead_letter
  WHERE status = 'redriving' AND triage_at = timestamptz 'epoch' + interval '1 second'`
const LINE = sql`SELECT id, unique_key AS key FROM redrive.job ORDER BY line`

const line = (db: Database) => db.query<{ id: JobId; key: string | null }>(LINE)
const keysInLine = async (db: Database) => (await line(db)).map(({ key }) => key)

const keyed = (keys: readonly string[]) => keys.map(uniqueKey => aJob({ uniqueKey }))

/** Two begin, one after the other, while somebody has what is in the middle of both: they stop there, or at each other. */
async function whileHeld<T>(
  db: Database,
  hold: (tx: Queryable) => Promise<unknown>,
  first: () => Promise<T>,
  second: () => Promise<T>,
): Promise<T[]> {
  const acting: Promise<T>[] = []
  await db.transaction(async tx => {
    await hold(tx)
    for (const act of [first, second]) {
      const done = act()
      done.catch(() => {})
      acting.push(done)
      await until(`${acting.length} wait for a lock`, async () => {
        const [row] = await db.query<{ waiting: number }>(WAITING)
        return row?.waiting === acting.length
      })
    }
  })
  return Promise.all(acting)
}

const holdM = (tx: Queryable) => enqueue(tx, keyed(['m']), null)

/** A job of each key dies, in this order. */
async function dead(db: Database, keys: readonly string[]): Promise<JobId[]> {
  const session = await aSession(db)
  const ids: JobId[] = []
  for (const uniqueKey of keys) {
    await enqueue(db, [aJob({ uniqueKey })], null)
    const [job] = await take(db, session, 1)
    if (!job) throw new Error('nothing was claimed')
    await settle(db, [buried(job)], '0')
    ids.push(job.id)
  }
  return ids
}

describe('two at once, in opposite orders', () => {
  it('enqueue: the first gets the keys, the second its jobs', async () => {
    const { db, another } = await freshDatabase('server')
    const [one, two] = [another(), another()]
    const [first, second] = await whileHeld(
      db,
      holdM,
      () => enqueue(one, keyed(['b', 'm', 'a']), null),
      () => enqueue(two, keyed(['a', 'm', 'b']), null),
    )
    expect(first?.map(({ deduplicated }) => deduplicated)).toEqual([false, true, false])
    expect(second?.map(({ deduplicated }) => deduplicated)).toEqual([true, true, true])
    expect(second?.map(({ id }) => id)).toEqual(first?.map(({ id }) => id).reverse())
    expect(await keysInLine(db)).toEqual(['m', 'b', 'a'])
  })

  it('redrive: the first sends its letters back, those of the second stay open', async () => {
    const { db, another } = await freshDatabase('server')
    const [one, two] = [another(), another()]
    const mine = await dead(db, ['b', 'm', 'a'])
    const theirs = await dead(db, ['a', 'm', 'b'])
    const [first, second] = await whileHeld(
      db,
      holdM,
      () => redrive(one, mine, null),
      () => redrive(two, theirs, null),
    )
    expect(first?.redriven.toSorted()).toEqual([mine[0], mine[2]].toSorted())
    expect(first?.conflicts).toEqual([mine[1]])
    expect(second?.redriven).toEqual([])
    expect(second?.conflicts.toSorted()).toEqual(theirs.toSorted())
    expect(await keysInLine(db), 'in the order of death').toEqual(['m', 'b', 'a'])
  })

  it.each(['first', 'second'] as const)('one looks at letters while one redrives them, %s', async nth => {
    const { db, another } = await freshDatabase('server')
    const [one, two] = [another(), another()]
    const ids = (await dead(db, ['a', 'b', 'c'])).sort()
    const backwards = ids.map(id => ({ id, at: 1_000 })).reverse()
    const look = () => lookAgain(one, backwards)
    let redriven: readonly JobId[] = []
    const sendBack = async () => {
      redriven = (await redrive(two, ids, null)).redriven
    }
    await whileHeld(
      db,
      tx => annotate(tx, ids[1] as JobId, { notes: 'mine' }),
      nth === 'first' ? look : sendBack,
      nth === 'first' ? sendBack : look,
    )
    expect(redriven.toSorted()).toEqual(ids)
    expect(await db.query(LOOKED_AT)).toEqual([{ notes: 1, letters: 3 }])
  })

  it('one enqueues and one redrives', async () => {
    const { db, another } = await freshDatabase('server')
    const [one, two] = [another(), another()]
    const letters = await dead(db, ['b', 'm', 'a'])
    const [redriven, enqueued] = await whileHeld<number>(
      db,
      holdM,
      async () => (await redrive(one, letters, null)).redriven.length,
      async () => (await enqueue(two, keyed(['a', 'm', 'b']), null)).filter(job => !job.deduplicated).length,
    )
    expect([redriven, enqueued]).toEqual([2, 0])
  })
})

it('many enqueue the same keys in as many orders, again and again', async () => {
  const { db, another } = await freshDatabase('server')
  const KEYS = 200
  // Without a common factor with 200, so that each comes past all keys.
  const ways = [1, 199, 3, 197, 7, 193].map(stride => ({ stride, other: another({ poolSize: 1 }) }))
  for (let round = 0; round < 10; round += 1) {
    const results = await Promise.all(
      ways.map(({ stride, other }) =>
        enqueue(other, keyed(Array.from({ length: KEYS }, (_, nth) => `${round} ${(nth * stride) % KEYS}`)), null),
      ),
    )
    expect(results.flat().filter(({ deduplicated }) => !deduplicated)).toHaveLength(KEYS)
  }
  expect(await line(db)).toHaveLength(10 * KEYS)
})

it.each(EMBEDDED_AND_SERVER)('places in line are as asked, with a key or without: $name', async ({ open }) => {
  const { db } = await open()
  const keys = ['z', undefined, 'a', 'Z', undefined, 'ä', 'a', 'b']
  const jobs = keys.map(uniqueKey => aJob(uniqueKey === undefined ? {} : { uniqueKey }))
  const enqueued = await enqueue(db, jobs, null)
  expect(
    enqueued.map(({ deduplicated }) => deduplicated),
    'the first of a key is the one',
  ).toEqual(keys.map((_, nth) => nth === 6))
  expect(enqueued[6]?.id).toBe(jobs[2]?.id)
  expect((await line(db)).map(({ id }) => id)).toEqual(jobs.filter((_, nth) => nth !== 6).map(({ id }) => id))
})
