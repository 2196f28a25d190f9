// Several statements as one transaction, each sent before the one before it is answered; and many jobs, which go that way.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { NewJob } from '../../src/domain/job.js'
import { jsonList, uuidList } from '../../src/ledger/binary-list.js'
import { type Database, hot, type Piece, sql } from '../../src/ledger/database.js'
import { openPg } from '../../src/ledger/databases/pg.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { waitingIn } from '../../src/ledger/job.js'
import { administer, freshDatabase } from '../support/databases.js'
import { openProxy } from '../support/proxy.js'
import { aJob, aSession, take } from '../support/story.js'

async function freshServer() {
  const fresh = await freshDatabase('server')
  return { ...fresh, url: fresh.url as string, schema: fresh.db.schema }
}

const ADD = hot(sql`INSERT INTO redrive.queue (name) VALUES ($1)`)
const NAMES = sql`SELECT name FROM redrive.queue ORDER BY name`
const OWN_PID = sql`SELECT pg_backend_pid() AS pid`
const PREPARED = sql`SELECT count(*)::integer AS count FROM pg_prepared_statements WHERE NOT from_sql`
const FORGET = sql`DEALLOCATE ALL`

const add = (name: string): Piece => {
  return () => ({ statement: ADD, params: [name] })
}
const namesIn = async (db: Database) => (await db.query<{ name: string }>(NAMES)).map(row => row.name)
const together = (db: Database, pieces: readonly Piece[]) => (db.together as NonNullable<Database['together']>)(pieces)

describe('statements that are sent together', () => {
  it('are all there, in their order, or nothing is', async () => {
    const { db } = await freshServer()
    await together(db, [])
    await together(db, ['a'].map(add))
    await together(db, ['b', 'c', 'd', 'e', 'f'].map(add))
    expect(await namesIn(db)).toEqual(['a', 'b', 'c', 'd', 'e', 'f'])
    for (const wrong of [
      ['a', 'x', 'y', 'z'],
      ['w', 'x', 'y', 'z', 'a'],
    ]) {
      await expect(together(db, wrong.map(add)), wrong.join()).rejects.toMatchObject({ code: '23505' })
    }
    expect(await namesIn(db)).toHaveLength(6)
  })

  it('leave nothing behind when one of them cannot be made', async () => {
    const { another } = await freshServer()
    const db = another({ poolSize: 1 })
    const impossible: Piece = () => {
      throw new Error('cannot be made')
    }
    await expect(together(db, [add('a'), add('b'), impossible, add('c')])).rejects.toThrow('cannot be made')
    expect(await namesIn(db), 'on the only connection there is').toEqual([])
  })

  it('are not sent any more once one has failed', async () => {
    const { db } = await freshServer()
    let made = 0
    const pieces = Array.from({ length: 1_000 }, (_, index): Piece => {
      return () => {
        made += 1
        return { statement: ADD, params: [index < 5 ? 'same' : `${index}`] }
      }
    })
    await expect(together(db, pieces)).rejects.toMatchObject({ code: '23505' })
    expect(made).toBeLessThan(20)
  })

  it('are prepared, until a pooler gives a connection that does not have them', async () => {
    const { another } = await freshServer()
    const db = another({ poolSize: 1 })
    const prepared = async () => (await db.query<{ count: number }>(PREPARED))[0]?.count
    await together(db, ['a', 'b', 'c', 'd'].map(add))
    expect(await prepared()).toBe(1)
    await db.query(FORGET)
    await together(db, ['e', 'f', 'g', 'h'].map(add))
    expect(await namesIn(db), 'each once').toHaveLength(8)
    expect(await prepared()).toBe(0)
  })

  it('give up a statement that takes too long, and the connection is good again', async () => {
    const { another } = await freshServer()
    const db = another({ statementTimeoutMs: 200, poolSize: 1 })
    const asleep: Piece = () => ({ statement: sql`SELECT pg_sleep(60)`, params: [] })
    await expect(together(db, [add('a'), asleep, add('b')])).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    expect(await namesIn(db)).toEqual([])
  })

  it('give up a server that has fallen silent', { timeout: 60_000 }, async () => {
    const { url, schema, db: ours } = await freshServer()
    const proxy = await openProxy(url)
    onTestFinished(() => proxy.close())
    const db = openPg(proxy.url, { schema, statementTimeoutMs: 200, poolSize: 1 })
    onTestFinished(() => db.close())
    await namesIn(db)
    const silencing: Piece = () => {
      proxy.freeze()
      return add('b')()
    }
    await expect(together(db, [add('a'), silencing, add('c')])).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    proxy.cut()
    expect(await namesIn(db)).toEqual([])
    expect(await namesIn(ours)).toEqual([])
  })

  it('leave nothing behind when their connection is killed, and the next query works', async () => {
    const { another, url } = await freshServer()
    const db = another({ poolSize: 1 })
    const [own] = await db.query<{ pid: number }>(OWN_PID)
    const kill = administer(url, `SELECT pg_sleep(0.2), pg_terminate_backend(${own?.pid})`)
    const slow: Piece = () => ({ statement: sql`SELECT pg_sleep(10)`, params: [] })
    await expect(together(db, [add('a'), slow, add('b')])).rejects.toMatchObject({ code: '57P01' })
    await kill
    expect(await namesIn(db)).toEqual([])
  })
})

describe('lists in the format of Postgres', () => {
  const READ = sql`SELECT array_to_json($1::uuid[])::text AS ids, array_to_json($2::json[])::text AS payloads`

  it('arrive as they were written', async () => {
    const { url } = await freshServer()
    const client = new pg.Client(url)
    await client.connect()
    onTestFinished(() => client.end())
    const ids = ['01890a5d-ac96-774b-bcce-b302099a8057', 'FFFFFFFF-ffff-7fff-bfff-000000000000']
    const payloads = ['{}', 'null', '"ä€😀 \\u0000 \\" \\\\ ,{}"', '[1, {"a": "\\ud83d"}]', `"${'é'.repeat(5_000)}"`]
    const read = async (...lists: [readonly string[], readonly string[]]) =>
      (await client.query(READ.text, [uuidList(lists[0]), jsonList(lists[1])])).rows[0]
    expect(await read(ids, payloads)).toEqual({
      ids: JSON.stringify(ids.map(id => id.toLowerCase())),
      payloads: `[${payloads.join(',')}]`,
    })
    expect(await read(ids.slice(1), [])).toMatchObject({ payloads: '[]' })
  })
})

describe('many jobs', () => {
  const large = (index: number): NewJob =>
    aJob({ payloadText: JSON.stringify({ index, text: `${index}ä`.repeat(40_000) }) })

  it('arrive whole and in their order, in as many pieces as they take', async () => {
    const { db } = await freshServer()
    const jobs = Array.from({ length: 30 }, (_, index) => large(index))
    expect(await enqueue(db, jobs, null)).toEqual(jobs.map(({ id }) => ({ id, deduplicated: false })))
    const taken = await take(db, await aSession(db))
    expect(taken.map(({ id, payloadText }) => [id, payloadText])).toEqual(
      jobs.map(({ id, payloadText }) => [id, payloadText]),
    )
  })

  it('keep what each of them asks for, piece by piece', async () => {
    const { db } = await freshServer()
    const jobs = Array.from({ length: 30 }, (_, index) => ({
      ...large(index),
      priority: index % 3,
      ...(index % 2 === 0 && { tenant: `tenant "${index}"` }),
    }))
    await enqueue(db, jobs, null)
    const taken = await take(db, await aSession(db))
    const inLine = jobs.toSorted((a, b) => b.priority - a.priority)
    expect(taken.map(({ id, priority, tenant }) => [id, priority, tenant])).toEqual(
      inLine.map(({ id, priority, tenant }) => [id, priority, tenant]),
    )
  })

  it('all or none: one that the ledger refuses takes all pieces with it', async () => {
    const { db } = await freshServer()
    const jobs = Array.from({ length: 30 }, (_, index) => large(index))
    for (const broken of [0, 29]) {
      const wrong = jobs.map((job, index) => (index === broken ? { ...job, payloadText: '{' } : job))
      await expect(enqueue(db, wrong, null), `job ${broken}`).rejects.toMatchObject({ code: '22P02' })
    }
    expect(await waitingIn(db, 'mail')).toBe(0)
  })

  it('wake the workers of an idle lane once, however many pieces there are', async () => {
    const { db } = await freshServer()
    const heard: string[] = []
    let up: () => void = () => {}
    const listening = new Promise<void>(resolve => {
      up = resolve
    })
    db.listen({ open: 'together' }, { onMessage: message => heard.push(message), onUp: up })
    await listening
    await enqueue(
      db,
      Array.from({ length: 30 }, (_, index) => large(index)),
      'together',
    )
    await enqueue(db, [aJob({ queue: 'last' })], 'together')
    await expect.poll(() => heard).toEqual(['mail', 'last'])
  })
})
