// How statements are asked: with one timer for all who wait, and with the last connection kept at hand.
import pg from 'pg'
import { describe, expect, it } from 'vitest'
import type { Clock } from '../../src/domain/clock.js'
import { type Database, hot, onLine, type Statement, sql } from '../../src/ledger/database.js'
import { Patience } from '../../src/ledger/databases/pg-patience.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'

describe('patience', () => {
  function waiting() {
    const clock = manualClock()
    const patience = new Patience(clock, 100)
    const gaveUp: string[] = []
    const begin = (name: string) => patience.begin(() => gaveUp.push(name))
    return { clock, patience, gaveUp, begin }
  }

  it('ends for each when its own time is over, and not for those who were answered', async () => {
    const { clock, patience, gaveUp, begin } = waiting()
    begin('a')
    await clock.advance(30)
    const answered = begin('b')
    await clock.advance(30)
    begin('c')
    patience.end(answered)
    await clock.advance(39)
    expect(gaveUp).toEqual([])
    await clock.advance(1)
    expect(gaveUp).toEqual(['a'])
    await clock.advance(59)
    expect(gaveUp).toEqual(['a'])
    await clock.advance(1)
    expect(gaveUp).toEqual(['a', 'c'])
    expect(clock.pending).toBe(0)
  })

  it('has one timer, however many wait, and none when nobody does', async () => {
    const { clock, patience, gaveUp, begin } = waiting()
    const all = Array.from({ length: 50 }, (_, nth) => begin(String(nth)))
    expect(clock.pending).toBe(1)
    for (const each of all) patience.end(each)
    await clock.advance(100)
    expect(clock.pending).toBe(0)
    begin('late')
    await clock.advance(99)
    expect(gaveUp).toEqual([])
    await clock.advance(1)
    expect(gaveUp).toEqual(['late'])
  })
})

describe('connections that are kept at hand', () => {
  const PID = sql`SELECT pg_backend_pid() AS pid`
  const SLEEP = sql`SELECT pg_sleep(0.05), pg_backend_pid() AS pid`
  async function aPool(poolSize: number, clock?: Clock) {
    const fresh = await freshDatabase('server')
    const db = fresh.another({ poolSize, idleMs: 10_000, ...(clock && { clock }) })
    const pid = async () => (await db.query<{ pid: number }>(PID))[0]?.pid
    return { db, pid, url: fresh.url as string }
  }

  it('are used again, and left to a transaction if there is no other', { timeout: 10_000 }, async () => {
    const { db, pid } = await aPool(1)
    const first = await pid()
    expect(await pid()).toBe(first)
    const within = await db.transaction(async tx => {
      // Waits until the transaction has ended: it has the only connection.
      const meanwhile = pid()
      const [row] = await tx.query<{ pid: number }>(PID)
      return { pid: row?.pid, meanwhile }
    })
    expect(within.pid).toBe(first)
    expect(await within.meanwhile).toBe(first)
    const both = await Promise.all([pid(), db.transaction(tx => tx.query(PID)), pid(), db.transaction(async () => 1)])
    expect(both).toEqual([first, [{ pid: first }], first, 1])
  })

  it('are no more than the pool may have, where many ask at once', async () => {
    const { db } = await aPool(3)
    const asked = await Promise.all(Array.from({ length: 9 }, () => db.query<{ pid: number }>(SLEEP)))
    expect(new Set(asked.map(([row]) => row?.pid)).size).toBe(3)
  })

  it('are asked again what they were asked before', async () => {
    const { db } = await aPool(5)
    const statements = ['claim', 'settle', 'renew'].map(name =>
      hot(sql`SELECT pg_sleep(0.05), pg_backend_pid() AS pid, '${name}' AS name`),
    )
    const ask = async (nth: number) => (await db.query<{ pid: number }>(statements[nth] as Statement))[0]?.pid
    const pids = await Promise.all([0, 1, 2].map(ask))
    expect(new Set(pids).size).toBe(3)
    for (const nth of [2, 0, 1, 1, 2, 0]) expect(await ask(nth)).toBe(pids[nth])
    expect(await Promise.all([1, 0, 2].map(ask))).toEqual([pids[1], pids[0], pids[2]])
  })

  it('are let go of when nobody has asked for ten seconds', async () => {
    const clock = manualClock()
    const { db, url } = await aPool(5, clock)
    const open = () =>
      administer(
        url,
        `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'redrive'`,
      )
    await Promise.all([1, 2, 3].map(() => db.query(SLEEP)))
    await clock.advance(9_000)
    const [row] = await db.query<{ pid: number }>(PID)
    await clock.advance(1_000)
    await until('two are closed', async () => (await open()).length === 1)
    await clock.advance(8_999)
    expect(await db.query(PID), 'was asked a second ago').toEqual([row])
    await clock.advance(10_000)
    await until('all are closed', async () => (await open()).length === 0)
    expect(await db.query(PID), 'and opened again').toHaveLength(1)
  })

  it('are replaced when they were killed while nobody asked', async () => {
    const { pid, url } = await aPool(2)
    const first = await pid()
    await administer(url, `SELECT pg_terminate_backend(${first})`)
    await until('it is gone and we know', async () => {
      const now = await pid().catch(() => first)
      return now !== undefined && now !== first
    })
  })

  it('are replaced after a statement that failed', async () => {
    const { db, pid } = await aPool(1)
    const first = await pid()
    await expect(db.query(sql`SELECT 1 / 0`)).rejects.toMatchObject({ code: '22012' })
    expect(await pid()).not.toBe(first)
  })
})

describe('a line', () => {
  const PID = sql`SELECT pg_backend_pid() AS pid`
  const SLEEP = sql`SELECT pg_sleep(0.05), pg_backend_pid() AS pid`
  const NEXT = sql`SELECT nextval('place')::integer AS place, pg_backend_pid() AS pid`

  async function lines(options: { poolSize?: number; clock?: Clock } = {}) {
    const fresh = await freshDatabase('server')
    await administer(fresh.url as string, 'CREATE SEQUENCE place')
    const db = fresh.another({ poolSize: 5, idleMs: 10_000, ...options })
    return { db, claims: onLine(db, 'claims'), ends: onLine(db, 'ends'), url: fresh.url as string }
  }
  const pidOf = async (db: Database, statement = PID) => (await db.query<{ pid: number }>(statement))[0]?.pid

  it('is one connection, answers in the order in which it was asked, and does not wait for another line', async () => {
    const { claims, ends } = await lines()
    const slow = pidOf(claims, SLEEP)
    const some = await Promise.all(Array.from({ length: 20 }, () => claims.query<{ place: number; pid: number }>(NEXT)))
    expect(some.map(([row]) => row?.place)).toEqual(Array.from({ length: 20 }, (_, nth) => nth + 1))
    expect(new Set(some.map(([row]) => row?.pid))).toEqual(new Set([await slow]))
    const [first, second] = await Promise.all([pidOf(claims, SLEEP), pidOf(ends, SLEEP)])
    expect(second).not.toBe(first)
    expect(await pidOf(ends)).toBe(second)
    expect(await pidOf(claims)).toBe(first)
  })

  it('answers what was sent behind a statement that failed, and goes on elsewhere', async () => {
    const { claims } = await lines()
    const before = await pidOf(claims)
    const all = await Promise.allSettled([pidOf(claims), claims.query(sql`SELECT 1 / 0`), pidOf(claims), pidOf(claims)])
    expect(all).toMatchObject([{ value: before }, { reason: { code: '22012' } }, { value: before }, { value: before }])
    expect(await pidOf(claims)).not.toBe(before)
  })

  it('tells everybody who waits when its connection breaks, and is made again', async () => {
    const { claims, url } = await lines()
    const before = await pidOf(claims)
    const waiting = [claims.query(sql`SELECT pg_sleep(60)`), pidOf(claims), pidOf(claims)]
    const over = Promise.allSettled(waiting)
    await administer(url, `SELECT pg_terminate_backend(${before})`)
    expect((await over).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected'])
    expect(await pidOf(claims)).not.toBe(before)
  })

  it('leaves its connection to others when nobody has asked there for a tenth of a second', async () => {
    const clock = manualClock()
    const { db, claims } = await lines({ clock })
    const line = await pidOf(claims)
    const twoOthers = () => Promise.all([pidOf(db, SLEEP), pidOf(db, SLEEP)])
    const others = await twoOthers()
    expect(others).not.toContain(line)
    await pidOf(claims)
    await clock.advance(100)
    const three = await Promise.all([pidOf(db, SLEEP), pidOf(db, SLEEP), pidOf(db, SLEEP)])
    expect(three.toSorted()).toEqual([line, ...others].toSorted())
    expect(await pidOf(claims)).toBeDefined()
  })

  it('does with others what there is where the pool has but one connection', { timeout: 10_000 }, async () => {
    const { db, claims, ends } = await lines({ poolSize: 1 })
    const pids = await Promise.all([claims, ends, db, claims, ends, db].map(each => pidOf(each, SLEEP)))
    expect(new Set(pids).size).toBe(1)
    for (const each of [ends, claims, db, ends]) expect(await pidOf(each)).toBe(pids[0])
  })

  it('lets go of its connection where others wait for one, however much is asked on it', {
    timeout: 20_000,
  }, async () => {
    const { db, claims, ends } = await lines({ poolSize: 2 })
    let asked = 0
    let over = false
    /** Two on their way at any time, so that the line is never at rest. */
    const busy = async (line: Database) => {
      while (!over) {
        await line.query(SLEEP)
        asked += 1
      }
    }
    const all = [claims, claims, ends, ends].map(busy)
    await until('both lines are busy', () => asked > 4)
    await db.query(PID)
    await db.transaction(async tx => tx.query(PID))
    over = true
    await Promise.all(all)
  })

  it('gives each statement its own time, from its turn on, and all up whose connection fell silent', async () => {
    const clock = manualClock()
    const { claims, url } = await lines({ clock })
    const pid = await pidOf(claims)
    const wait = (key: number) => claims.query(sql`SELECT pg_advisory_xact_lock(${String(key)})`)
    const [first, second] = await Promise.all([holding(url, 1), holding(url, 2)])
    const asked = [wait(1), wait(2), pidOf(claims)] as const
    const outcomes = Promise.allSettled(asked)
    await first.untilWaited()
    await clock.advance(34_000)
    await first.letGo()
    await asked[0]
    await second.untilWaited()
    await clock.advance(34_999)
    expect(clock.pending, 'it has 35 seconds').toBeGreaterThan(0)
    await clock.advance(1)
    expect(await outcomes).toMatchObject([
      { status: 'fulfilled' },
      { reason: { code: 'STATEMENT_TIMEOUT' } },
      { status: 'rejected' },
    ])
    await second.letGo()
    expect(await pidOf(claims)).not.toBe(pid)
  })
})

/** Somebody who has an advisory lock that others wait for. */
async function holding(url: string, key: number) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query('SELECT pg_advisory_lock($1)', [key])
  const waited = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = ${key} AND NOT granted`
  return {
    untilWaited: () => until('somebody waits', async () => (await administer(url, waited)).length > 0),
    letGo: () => client.end(),
  }
}
