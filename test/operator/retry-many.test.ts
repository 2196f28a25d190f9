// Sending back many: the set is that of the call, whatever happens to it while its batches are written; who could not go is
// told apart from who went; and a batch and its entry in the audit are there together or not at all.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { type JobId, newJobId } from '../../src/domain/ids.js'
import { readAudit } from '../../src/ledger/audit.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { removeDeadLetters } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { batchOf, redrive, redriveMany } from '../../src/ledger/redrive.js'
import { wakeChannel } from '../../src/ledger/wake-channel.js'
import { deadLetters } from '../../src/operator/dead-letters.js'
import { freshDatabase } from '../support/databases.js'
import { aJob } from '../support/story.js'

/** Three batches. */
const LETTERS = 2_500

/** Numbers `$2` to `$3`, each dead a millisecond after the one before it, every fourth of another queue; `$1`: with keys. */
const FILL = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, outcome, kind, queue, name, payload, reason, message, fingerprint, unique_key)
  SELECT gen_random_uuid(), g, timestamptz '2030-01-01' + g * interval '1 ms', now(), now(), 1, 0, 0, 5, 'failed', 'network',
    CASE WHEN g % 4 = 0 THEN 'fax' ELSE 'mail' END, 'send', '{}', 'over', 'busy', 'v1:x', CASE WHEN $1::boolean THEN 'key ' || g END
  FROM generate_series($2::integer, $3::integer) g`
const DIED = sql`SELECT id, status FROM redrive.dead_letter ORDER BY died_at`
const IN_LINE = sql`SELECT id FROM redrive.job WHERE redrives > 0 ORDER BY line`

interface Died {
  readonly id: JobId
  readonly status: string
}

/** `act` is done once, between the freezing of the set and its first batch. */
function meanwhile(db: Database, act: () => Promise<unknown>): Database {
  let acting: Promise<unknown> | undefined
  return {
    ...db,
    async query<Row>(statement: Parameters<Database['query']>[0], params: Parameters<Database['query']>[1] = []) {
      if (/UPDATE redrive\.dead_letter|redrive\.send_back/.test(statement.text)) {
        acting ??= act()
        await acting
      }
      return db.query<Row>(statement, params)
    },
  }
}

describe.each(['memory', 'server'] as const)('sending back many (%s)', kind => {
  async function withDead({ keyed = false, letters = LETTERS } = {}) {
    const { db } = await freshDatabase(kind)
    await db.query(FILL, [keyed, 1, letters])
    const ids = (await db.query<Died>(DIED)).map(({ id }) => id)
    const woken = new Set<string>()
    const desk = (on = db) => deadLetters({ db: on, wake: queue => woken.add(queue) })
    const inLine = async () => (await db.query<Died>(IN_LINE)).map(({ id }) => id)
    const totals = async () => {
      const entries = await readAudit(db, { limit: 10 })
      return entries.map(({ after }) => after as { redriven: number; conflicts: number })
    }
    return { db, ids, desk, woken, inLine, totals }
  }

  it('all of them go, in the order of their deaths, and each batch has its entry', async () => {
    const { db, ids, desk, woken, inLine } = await withDead()
    const { redriven, conflicts } = await desk().retryMany({ all: true }, { actor: 'ada', reason: 'fixed' })
    expect([new Set(redriven), conflicts]).toEqual([new Set(ids), []])
    expect(await inLine()).toEqual(ids)
    expect(woken).toEqual(new Set(['fax', 'mail']))
    const said = {
      actor: 'ada',
      action: 'retry many',
      targetType: 'dead_letter',
      target: '{"all":true}',
      reason: 'fixed',
    }
    const entries = (await readAudit(db, { limit: 10 })).sort((a, b) =>
      JSON.stringify(a.after).localeCompare(JSON.stringify(b.after)),
    )
    expect(entries).toMatchObject([1_000, 1_000, 500].map(redriven => ({ ...said, after: { redriven, conflicts: 0 } })))
  })

  it('what dies after the call does not join, however early it died by its time', async () => {
    const { db, ids, desk, inLine } = await withDead()
    const later = meanwhile(db, async () => {
      await db.query(FILL, [false, LETTERS + 1, LETTERS + 5])
      await db.query(FILL, [false, -5, -1])
    })
    const { redriven } = await desk(later).retryMany({ all: true })
    expect(redriven).toHaveLength(LETTERS)
    expect(await inLine()).toEqual(ids)
    const left = (await db.query<Died>(DIED)).filter(({ status }) => status === 'pending')
    expect(left).toHaveLength(10)
  })

  it('one that somebody else sent back or removed meanwhile is in neither list, and the others keep their order', async () => {
    const { db, ids, desk, inLine, totals } = await withDead()
    const [sent, removed] = [ids[3], ids[1_500]] as [JobId, JobId]
    const busy = meanwhile(db, async () => {
      await redrive(db, [sent], null)
      await removeDeadLetters(db, [removed])
    })
    const { redriven, conflicts } = await desk(busy).retryMany({ all: true })
    const others = ids.filter(id => id !== sent && id !== removed)
    expect([new Set(redriven), conflicts]).toEqual([new Set(others), []])
    expect(redriven).toHaveLength(others.length)
    expect((await inLine()).filter(id => id !== sent)).toEqual(others)
    expect((await totals()).reduce((sum, { redriven }) => sum + redriven, 0)).toBe(others.length)
  })

  it('those whose unique key is taken stay and are told, in every batch', async () => {
    const { db, ids, desk, inLine, totals } = await withDead({ keyed: true })
    const taken = [2, 1_002, 1_003, 2_499]
    await enqueue(
      db,
      taken.map(n => aJob({ queue: 'mail', uniqueKey: `key ${n}` })),
      null,
    )
    const { redriven, conflicts } = await desk().retryMany({ all: true })
    const stayed = taken.map(n => ids[n - 1] as JobId)
    const went = ids.filter(id => !stayed.includes(id))
    expect([...conflicts].sort()).toEqual([...stayed].sort())
    expect(new Set(redriven)).toEqual(new Set(went))
    expect(redriven).toHaveLength(went.length)
    expect(await inLine()).toEqual(went)
    const left = (await db.query<Died>(DIED)).filter(({ status }) => status === 'pending')
    expect(left.map(({ id }) => id)).toEqual(stayed)
    expect((await totals()).reduce((sum, { conflicts }) => sum + conflicts, 0)).toBe(stayed.length)
  })

  it('where none of several goes, none is said to have gone', async () => {
    const { db, ids } = await withDead({ keyed: true, letters: 3 })
    await enqueue(db, [aJob({ queue: 'mail', uniqueKey: 'key 1' })], null)
    const [taken, gone, free] = ids as [JobId, JobId, JobId]
    await removeDeadLetters(db, [gone])
    const none = await redriveMany(db, batchOf([taken, gone, newJobId()]), null)
    expect(none).toEqual({ redriven: [], conflicts: [taken], queues: new Set() })
    const one = await redriveMany(db, batchOf([taken, gone, free, free]), null)
    expect(one).toEqual({ redriven: [free], conflicts: [taken], queues: new Set(['mail']) })
  })

  it('a batch whose entry cannot be written does not go', async () => {
    const { db, desk, inLine } = await withDead({ letters: 5 })
    await db.query(sql`ALTER TABLE redrive.audit ADD CONSTRAINT nobody CHECK (actor <> 'nobody')`)
    await expect(desk().retryMany({ all: true }, { actor: 'nobody' })).rejects.toThrow(/nobody/)
    expect(await inLine()).toEqual([])
    expect((await db.query<Died>(DIED)).map(({ status }) => status)).toEqual(Array(5).fill('pending'))
  })

  it('a status that is left open means those that wait for somebody', async () => {
    const { db, ids, desk } = await withDead({ letters: 3 })
    await desk().markFailed(ids[0] as string, { reason: 'given up' })
    const selection = { queue: 'mail', status: undefined } as never
    expect(await desk().preview(selection)).toBe(2)
    expect((await desk().retryMany(selection)).redriven).toEqual(ids.slice(1))
    expect((await db.query<Died>(DIED))[0]?.status).toBe('permanently_failed')
  })
})

it('other processes hear of every queue that has work now, and of no other', async () => {
  const { db, url } = await freshDatabase('server')
  await db.query(FILL, [true, 1, 4])
  await enqueue(db, [aJob({ queue: 'fax', uniqueKey: 'key 4' })], null)
  const listener = new pg.Client({ connectionString: url })
  await listener.connect()
  onTestFinished(() => listener.end())
  const heard: (string | undefined)[] = []
  listener.on('notification', ({ payload }) => heard.push(payload))
  await listener.query(`LISTEN ${wakeChannel(db)}`)
  const { redriven, conflicts } = await deadLetters({ db, wake: () => {} }).retryMany({ all: true })
  await listener.query('SELECT 1') // what was notified before is heard by now
  expect([redriven.length, conflicts.length, heard]).toEqual([3, 1, ['mail']])
})
