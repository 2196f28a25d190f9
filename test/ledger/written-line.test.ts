// Places in line that are written by whoever puts a job there (0021_written_line.sql): those that were there before keep their order,
// and processes of the version before, which write a number instead, still put jobs in line.
import { expect, it } from 'vitest'
import { newJobId } from '../../src/domain/ids.js'
import { sql } from '../../src/ledger/database.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { migrate } from '../../src/ledger/migrate.js'
import { promote } from '../../src/ledger/promote.js'
import { migratedBefore } from '../support/before.js'
import { freshDatabase } from '../support/databases.js'
import { aJob, aSession, take } from '../support/story.js'

const ENQUEUE_BEFORE = sql`
  SELECT redrive.enqueue(NULL, NULL, 'mail', 'send', NULL, NULL, $1::smallint, ARRAY[$2::uuid], '[{}]', NULL)`
// As versions before this one asked, where it matters.
const UNIQUE_BEFORE = sql`
  INSERT INTO redrive.job (id, seq, in_line, state, queue, name, priority, payload, run_at, created_at, unique_key)
  VALUES ($1::uuid, nextval('redrive.job_seq'), $2::boolean, $3::redrive.job_state, 'mail', 'send', 5, '{}', now(), now(), $4)`
const PROMOTE_BEFORE = sql`
  UPDATE redrive.job j SET state = 'waiting', in_line = true, seq = nextval('redrive.job_seq'), held_by = NULL
  WHERE NOT in_line`

it('jobs that waited before keep their order', async () => {
  const { db } = await freshDatabase('server', { migrated: false })
  const ids = [5, 9, 5, 0, 10, 9].map(priority => ({ priority, id: newJobId() }))
  await migratedBefore(db, 21, async tx => {
    for (const { priority, id } of ids) await tx.query(ENQUEUE_BEFORE, [priority, id])
  })
  expect(await migrate(db)).not.toEqual([])
  const later = [aJob({ priority: 9 }), aJob(), aJob({ priority: 0 })]
  for (const job of later) await enqueue(db, [job], null)
  const order = [4, 1, 5, 'later 0', 0, 2, 'later 1', 3, 'later 2']
  const expected = order.map(at => (typeof at === 'number' ? ids[at]?.id : later[Number(at.slice(6))]?.id))
  expect((await take(db, await aSession(db), 20)).map(({ id }) => id)).toEqual(expected)
})

it.each(['server', 'memory'] as const)('processes of the version before put jobs in line (%s)', async kind => {
  const { db } = await freshDatabase(kind)
  const [first, unique, putOff, last] = [aJob(), newJobId(), newJobId(), aJob()]
  await enqueue(db, [first], null)
  await db.query(UNIQUE_BEFORE, [unique, true, 'waiting', 'a'])
  await db.query(UNIQUE_BEFORE, [putOff, false, 'scheduled', 'b'])
  await db.query(PROMOTE_BEFORE)
  await enqueue(db, [last], null)
  expect((await promote(db, 10, null)).promoted).toBe(0)
  expect((await take(db, await aSession(db), 20)).map(({ id }) => id)).toEqual([first.id, unique, putOff, last.id])
})
