// The adapter to a Postgres server: what it takes, what it gives back, and what it does when a connection breaks.
import { type AddressInfo, createServer } from 'node:net'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { sql } from '../../src/ledger/database.js'
import { adoptPg, openPg } from '../../src/ledger/databases/pg.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { waitingIn } from '../../src/ledger/job.js'
import { startRun } from '../../src/ledger/recovery-run.js'
import { administer, freshDatabase } from '../support/databases.js'
import { openProxy } from '../support/proxy.js'
import { aJob } from '../support/story.js'
import { until } from '../support/until.js'

const ONE = sql`SELECT 1 AS one`
const SLEEP = sql`SELECT pg_sleep(60)`
const OWN_PID = sql`SELECT pg_backend_pid() AS pid`

async function freshServer() {
  const fresh = await freshDatabase('server')
  return { ...fresh, url: fresh.url as string, schema: fresh.db.schema }
}

const terminate = (url: string, pid: number) => administer(url, `SELECT pg_terminate_backend(${pid})`)

describe('what the user brings', () => {
  it('a pool is used and left open', async () => {
    const { url, schema } = await freshServer()
    const pool = new pg.Pool({ connectionString: url })
    onTestFinished(() => pool.end())
    const db = adoptPg(pool, { schema })
    await enqueue(db, [aJob()], null)
    expect(await db.transaction(tx => waitingIn(tx, 'mail'))).toBe(1)
    await db.close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
    expect(pool.idleCount, 'every connection was given back').toBe(pool.totalCount)
  })

  it('prepares what it sends all the time, until a pooler gives it a connection that does not have it', async () => {
    const { url, schema } = await freshServer()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    const preparedNow = async () => (await pool.query('SELECT name FROM pg_prepared_statements')).rows.length
    const db = adoptPg(pool, { schema })
    await enqueue(db, [aJob()], null)
    await enqueue(db, [aJob()], null)
    expect(await preparedNow()).toBe(1)

    await pool.query('DEALLOCATE ALL')
    for (let time = 0; time < 3; time += 1) await enqueue(db, [aJob()], null)
    expect(await waitingIn(db, 'mail'), 'each ran once').toBe(5)
    expect(await preparedNow()).toBe(0)
  })

  it('prepares nothing where a statement of the same name is there already', async () => {
    const { url, schema } = await freshServer()
    const pool = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => pool.end())
    await enqueue(adoptPg(pool, { schema }), [aJob()], null)
    const {
      rows: [{ name }],
    } = await pool.query('SELECT name FROM pg_prepared_statements')
    const other = new pg.Pool({ connectionString: url, max: 1 })
    onTestFinished(() => other.end())
    await other.query(`PREPARE ${name} AS SELECT 1`)
    await enqueue(adoptPg(other, { schema }), [aJob()], null)
    expect(await waitingIn(adoptPg(other, { schema }), 'mail')).toBe(2)
  })

  it('an object with nothing but query(text, params) works, transactions included', async () => {
    const { url, schema } = await freshServer()
    const client = new pg.Client(url)
    await client.connect()
    onTestFinished(() => client.end())
    const db = adoptPg({ query: (text, params) => client.query(text, params) }, { schema })
    expect(db.listen({ open: 'channel' }, { onMessage() {}, onUp() {} })).toBeUndefined()

    await expect(
      db.transaction(async tx => {
        await enqueue(tx, [aJob()], null)
        throw new Error('changed my mind')
      }),
    ).rejects.toThrow('changed my mind')
    expect(await waitingIn(db, 'mail')).toBe(0)

    expect(await startRun(db, 'demand', 'worker-1')).toMatchObject({ status: 'running' })
    await db.close()
    expect((await client.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })

  it('on one connection, other statements wait until a transaction has ended', async () => {
    const { url, schema } = await freshServer()
    const client = new pg.Client(url)
    await client.connect()
    onTestFinished(() => client.end())
    const db = adoptPg({ query: (text, params) => client.query(text, params) }, { schema })
    let outside: Promise<unknown> | undefined
    await db
      .transaction(async tx => {
        outside = enqueue(db, [aJob()], null)
        await enqueue(tx, [aJob()], null)
        throw new Error('rolled back')
      })
      .catch(() => {})
    await outside
    expect(await waitingIn(db, 'mail'), 'only what was outside of it').toBe(1)
  })

  it('a transaction of the caller carries the enqueue: it is there when, and only when, the caller commits', async () => {
    const { db, url } = await freshServer()
    const client = new pg.Client(url)
    await client.connect()
    onTestFinished(() => client.end())
    await client.query('BEGIN')
    await enqueue(db.within(client), [aJob()], null)
    expect(await waitingIn(db, 'mail')).toBe(0)
    await client.query('ROLLBACK')
    expect(await waitingIn(db, 'mail')).toBe(0)
    await client.query('BEGIN')
    await enqueue(db.within(client), [aJob()], null)
    await client.query('COMMIT')
    expect(await waitingIn(db, 'mail')).toBe(1)
  })
})

describe('a statement that takes too long is given up', () => {
  it('by the server, with a code of ours, and the connection is good again', async () => {
    const { another } = await freshServer()
    const db = another({ statementTimeoutMs: 200, poolSize: 1 })
    await expect(db.query(SLEEP)).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    await expect(db.transaction(tx => tx.query(SLEEP))).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    expect(await db.query(ONE)).toEqual([{ one: 1 }])
  })

  it('also on a connection of the user', async () => {
    const { url, schema } = await freshServer()
    const client = new pg.Client({ connectionString: url, statement_timeout: 200 })
    await client.connect()
    onTestFinished(() => client.end())
    const db = adoptPg({ query: (text, params) => client.query(text, params) }, { schema })
    await expect(db.query(SLEEP)).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    expect(await db.query(ONE)).toEqual([{ one: 1 }])
  })

  it('by us, when the server has fallen silent, alone or in a transaction', { timeout: 60_000 }, async () => {
    const { url, schema } = await freshServer()
    const proxy = await openProxy(url)
    onTestFinished(() => proxy.close())
    const db = openPg(proxy.url, { schema, statementTimeoutMs: 200, poolSize: 2 })
    onTestFinished(() => db.close())
    await db.query(ONE)
    const silent = db.transaction(async tx => {
      await db.query(ONE)
      proxy.freeze()
      await Promise.all([
        expect(tx.query(ONE)).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' }),
        expect(db.query(ONE)).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' }),
      ])
      throw new Error('given up')
    })
    await expect(silent).rejects.toThrow('given up')
    proxy.cut()
    expect(await db.query(ONE)).toEqual([{ one: 1 }])
  })
})

describe('a connection that is killed', () => {
  it('in the middle of a transaction: an error, nothing kept, and the next query works', async () => {
    const { another, url } = await freshServer()
    const db = another({ poolSize: 1 })
    await expect(
      db.transaction(async tx => {
        await enqueue(tx, [aJob()], null)
        const [own] = await tx.query<{ pid: number }>(OWN_PID)
        await terminate(url, own?.pid ?? 0)
        await tx.query(ONE)
      }),
    ).rejects.toThrow()
    expect(await waitingIn(db, 'mail')).toBe(0)
  })

  it('in the middle of a statement: an error, and the next query works', async () => {
    const { another, url } = await freshServer()
    const db = another({ poolSize: 2 })
    const asleep = db.query(SLEEP)
    const pid = await sleeper(url)
    await Promise.all([expect(asleep).rejects.toMatchObject({ code: '57P01' }), terminate(url, pid)])
    expect(await db.query(ONE)).toEqual([{ one: 1 }])
  })

  it('while idle: the process lives on, and the next query works', async () => {
    const { another, url } = await freshServer()
    const db = another({ poolSize: 1 })
    const [own] = await db.query<{ pid: number }>(OWN_PID)
    await terminate(url, own?.pid ?? 0)
    expect(await db.query(ONE).catch(() => db.query(ONE))).toEqual([{ one: 1 }])
  })
})

const SLEEPER = `
  SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND query LIKE '%pg_sleep(60)%' AND pid <> pg_backend_pid()`

const sleeper = (url: string) =>
  until('the statement runs', async () => ((await administer(url, SLEEPER)) as { pid: number }[])[0]?.pid)

it('parameters never reach the text of a statement', async () => {
  const texts: string[] = []
  const db = adoptPg(
    {
      query: async (text: string) => {
        texts.push(text)
        return { rows: [] }
      },
    },
    { schema: 'redrive' },
  )
  await enqueue(db, [aJob({ queue: 'secret-queue', payloadText: '"secret"' })], null)
  expect(texts.join()).not.toContain('secret')
})

it('a connection that is terminated with its first word fails what asked for it, and nothing else', async () => {
  const message = (kind: string, body: Buffer) => {
    const head = Buffer.alloc(5)
    head.write(kind)
    head.writeInt32BE(body.length + 4, 1)
    return Buffer.concat([head, body])
  }
  const fatal = 'SFATAL\0VFATAL\0C57P01\0Mterminating connection due to administrator command\0\0'
  // All in one piece: the pool gives the connection away and hears the end of it in the same breath.
  const welcome = Buffer.concat([
    message('R', Buffer.alloc(4)),
    message('Z', Buffer.from('I')),
    message('E', Buffer.from(fatal)),
  ])
  const server = createServer(socket => {
    socket.on('error', () => {})
    socket.once('data', () => socket.end(welcome))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const url = `postgres://nobody@127.0.0.1:${port}/none`
  const theirs = new pg.Pool({ connectionString: url })
  onTestFinished(() => theirs.end())
  for (const db of [openPg(url, { schema: 'redrive' }), adoptPg(theirs, { schema: 'redrive' })]) {
    onTestFinished(() => db.close())
    await expect(db.transaction(tx => tx.query(ONE))).rejects.toThrow()
    await expect(db.query(ONE)).rejects.toThrow()
  }
})
