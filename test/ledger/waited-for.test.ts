// A row that somebody changes while another statement waits for its lock: what that statement does must still reach it. Seen
// red: with rows found again by their place (ctid), which the snapshot of the statement that waited does not see.
import { expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { annotate } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { makeGroups, noticeFailures } from '../../src/ledger/group-notice.js'
import { forgetKeys, keepAnswer, takeKey } from '../../src/ledger/idempotency-key.js'
import { redrive } from '../../src/ledger/redrive.js'
import { settle } from '../../src/ledger/settle.js'
import type { Desk } from '../../src/operator/context.js'
import { groups } from '../../src/operator/groups.js'
import { freshDatabase } from '../support/databases.js'
import { aFailure, aJob, aSession, buried, sentBack, take } from '../support/story.js'
import { until } from '../support/until.js'

const WAITING = sql`
  SELECT count(*)::integer AS waiting FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`

/** Runs `change` in a transaction, lets `act` begin and wait for it, and commits then. */
async function meanwhile<T>(
  db: Database,
  change: (tx: Database) => Promise<unknown>,
  act: () => Promise<T>,
): Promise<T> {
  let acting: Promise<T> | undefined
  await db.transaction(async tx => {
    await change(tx as unknown as Database)
    acting = act()
    acting.catch(() => {})
    await until('somebody waits for a lock', async () => {
      const [row] = await db.query<{ waiting: number }>(WAITING, [])
      return (row?.waiting ?? 0) > 0
    })
  })
  return acting as Promise<T>
}

async function dead(db: Database) {
  await enqueue(db, [aJob()], null)
  const [job] = await take(db, await aSession(db), 1)
  if (!job) throw new Error('nothing was claimed')
  await settle(db, [buried(job, aFailure({ kind: 'permanent', fingerprint: 'v1:one' }))], '0')
  return job.id
}

it.each<[string, (db: Database, id: JobId) => ReturnType<typeof redrive>]>([
  ['sent back', (db, id) => redrive(db, [id], null)],
  ['sent back with others', (db, id) => sentBack(db, [id])],
])('a dead letter that is annotated while it is %s is marked as sent back', async (_how, sendItBack) => {
  const { db, another } = await freshDatabase('server')
  const id = await dead(db)
  const other = another()
  const { redriven } = await meanwhile(
    db,
    tx => annotate(tx, id, { notes: 'mine' }),
    () => sendItBack(other, id),
  )
  expect(redriven).toEqual([id])
  expect(await getDeadLetter(db, id)).toMatchObject({ status: 'redriving', notes: 'mine' })
  const [job] = await db.query(sql`SELECT state::text FROM redrive.job WHERE id = $1::uuid`, [id])
  expect(job).toEqual({ state: 'waiting' })
})

it('a group that another process counts while we wait is counted by us as well', async () => {
  const { db, another } = await freshDatabase('server')
  const other = another()
  await dead(db)
  await makeGroups(db)
  await noticeFailures(db, ['v1:one'])
  await dead(db)
  await meanwhile(
    db,
    tx => tx.query(sql`UPDATE redrive.failure_group SET priority = 9`, []),
    () => noticeFailures(other, ['v1:one']),
  )
  const [group] = await db.query(sql`SELECT failures::integer, priority FROM redrive.failure_group`, [])
  expect(group).toEqual({ failures: 2, priority: 9 })
})

it('a group that another process makes while it is asked for is found', async () => {
  const { db, another } = await freshDatabase('server')
  const other = another()
  await dead(db)
  const found = await meanwhile(
    db,
    tx => makeGroups(tx),
    () => groups({ db: other } as Desk).update('v1:one', { priority: 9 }),
  )
  expect(found).toMatchObject({ id: 'v1:one', priority: 9, failures: 1 })
  await expect(groups({ db } as Desk).get('v1:nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' })
})

it('a key that is taken anew while it is forgotten is not forgotten', async () => {
  const { db, clock, another } = await freshDatabase('server', { now: '2030-01-01T00:00:00.000Z' })
  const other = another()
  const request = { token: 'ci', key: 'k', request: 'hash of a request' }
  await takeKey(db, request, 1_000)
  await keepAnswer(db, request, { status: 201, body: '{}' }, 1_000)
  clock.advance(1_000)
  await meanwhile(
    db,
    async tx => expect(await takeKey(tx, request, 1_000)).toEqual({ state: 'mine' }),
    () => forgetKeys(other, 0, 10),
  )
  expect(await takeKey(db, request, 1_000)).toEqual({ state: 'under way' })
})
