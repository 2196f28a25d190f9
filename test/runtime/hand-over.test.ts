// Jobs handed to workers as they are enqueued: each runs once, whether its worker hears of it, finds it or has no place for it.
import { setTimeout } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import { type Channels, type Database, type Listener, sql } from '../../src/ledger/database.js'
import { defineJob, type Handler } from '../../src/runtime/definition.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { freshDatabase } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { type Moving, move } from '../support/runtime.js'
import { until } from '../support/until.js'

const STANDING = sql`SELECT DISTINCT session_id::text AS session FROM redrive.standby`
const STATES = sql`SELECT state::text AS state, attempt, interruptions FROM redrive.job`
const FINISHED = sql`SELECT state::text AS state, attempt, interruptions, lost FROM redrive.finished_job`

const standing = (db: Database, count: number) =>
  until(`${count} stand by`, async () => (await db.query(STANDING)).length === count)

/** A database that can be made deaf: what is said then is kept, and can be said late. */
function hardOfHearing(db: Database) {
  const missed: (() => void)[] = []
  const ears = {
    deaf: false,
    late() {
      for (const say of missed.splice(0)) say()
    },
  }
  const listen = (channels: Channels, { onUp, onMessage }: Listener) =>
    db.listen(channels, {
      onUp,
      onMessage: (message, channel) => {
        if (ears.deaf) missed.push(() => onMessage(message, channel))
        else onMessage(message, channel)
      },
    })
  return { db: { ...db, listen }, ears, missed }
}

/** Counts what is handed over. */
const counting = (handed: ClaimedJob[]) => (runtime: Runtime) => {
  const transport = postgresTransport(runtime.db)
  const consume: typeof transport.consume = options =>
    transport.consume({
      ...options,
      onHanded: job => {
        handed.push(job)
        options.onHanded?.(job)
      },
    })
  return { transport: { ...transport, consume } }
}

const aJob = (handler: Handler<number, unknown>, concurrency?: number) =>
  defineJob<number>({ name: 'send', queue: 'mail', handler, ...(concurrency && { concurrency }) })

async function aFleet() {
  const fresh = await freshDatabase('server')
  const handed: ClaimedJob[] = []
  const process = (): Omit<Moving, keyof typeof fresh> => move({ db: fresh.another() }, counting(handed))
  return { ...fresh, handed, process, producer: process() }
}

describe('a worker that stands by', () => {
  it('is handed what is enqueued, and runs each job once', async () => {
    const { db, handed, process, producer } = await aFleet()
    const ran: number[] = []
    const job = aJob(async nth => void ran.push(nth))
    process().work([job])
    await standing(db, 1)
    // Few enough for a worker that is handed all of them at once: with more than 20 in a tenth of a second, it stands down.
    const jobs = Array.from({ length: 20 }, (_, nth) => nth)
    for (const nth of jobs) {
      await producer.enqueue(job, nth)
      await until('it ran', () => ran.length === nth + 1)
    }
    await until('all have ended', async () => (await db.query(FINISHED)).length === jobs.length)
    expect(ran.sort((a, b) => a - b)).toEqual(jobs)
    expect(handed).toHaveLength(jobs.length)
    expect(new Set((await db.query(FINISHED)).map(row => JSON.stringify(row)))).toEqual(
      new Set([JSON.stringify({ state: 'completed', attempt: 1, interruptions: 0, lost: 0 })]),
    )
  })

  it('gives back what it has no place for, and another runs it at once', async () => {
    const { db, handed, process, producer } = await aFleet()
    const leave = gate()
    const inside = new Set<number>()
    const job = aJob(async nth => {
      inside.add(nth)
      await leave.passed
    })
    for (const name of ['w1', 'w2', 'w3']) process().work([job], { name, concurrency: 1, pollMs: 60_000 })
    await standing(db, 3)
    for (let nth = 0; nth < 3; nth += 1) await producer.enqueue(job, nth)
    await until('all three run', () => inside.size === 3)
    expect(handed.length).toBeGreaterThan(0)
    const states = await db.query(STATES)
    expect(states).toEqual([1, 2, 3].map(() => ({ state: 'active', attempt: 1, interruptions: 0 })))
    leave.open()
  })

  it('keeps to what a definition says of its own concurrency', async () => {
    const { db, process, producer } = await aFleet()
    const leave = gate()
    let inside = 0
    let most = 0
    const job = aJob(async () => {
      inside += 1
      most = Math.max(most, inside)
      await leave.passed
      inside -= 1
    }, 2)
    process().work([job], { concurrency: 10 })
    await standing(db, 1)
    for (let nth = 0; nth < 5; nth += 1) await producer.enqueue(job, nth)
    await until('two run', () => inside === 2)
    await setTimeout(200)
    expect(inside).toBe(2)
    leave.open()
    await until('all have ended', async () => (await db.query(FINISHED)).length === 5)
    expect(most).toBe(2)
  })

  it('does not for jobs with a rate limit', async () => {
    const { db, process } = await aFleet()
    const limited = defineJob<number>({
      name: 'limited',
      queue: 'mail',
      rateLimit: { limit: 1_000, intervalMs: 1_000 },
      handler: async () => {},
    })
    process().work([limited, aJob(async () => {})])
    await standing(db, 1)
    expect(await db.query(sql`SELECT DISTINCT name FROM redrive.standby`)).toEqual([{ name: 'send' }])
  })
})

it('stands by again after the database forgot that it does', async () => {
  const { db, process } = await aFleet()
  process().work([aJob(async () => {})])
  await standing(db, 1)
  await db.query(sql`TRUNCATE redrive.standby`)
  await standing(db, 0)
  await standing(db, 1)
})

describe('a worker that does not hear', () => {
  const deafWorker = async (handler: Handler<number, unknown> = async () => {}, concurrency?: number) => {
    const fresh = await freshDatabase('server')
    const { db: hard, ears, missed } = hardOfHearing(fresh.another())
    const runs = new Map<number, number>()
    const counted: Handler<number, unknown> = (nth, context) => {
      runs.set(nth, (runs.get(nth) ?? 0) + 1)
      return handler(nth, context)
    }
    const job = aJob(counted, concurrency)
    const worker = move({ db: hard }).work([job], { pollMs: 200 })
    const producer = move({ db: fresh.another() })
    return { ...fresh, ears, missed, runs, job, worker, producer }
  }

  it('finds what it was handed, once, even if it hears of it afterwards', async () => {
    const { db, ears, missed, runs, job, producer } = await deafWorker()
    await standing(db, 1)
    ears.deaf = true
    await producer.enqueue(job, 1)
    await until('it was said', () => missed.length > 0)
    expect(runs.size).toBe(0)
    await until('it is found', async () => (await db.query(FINISHED)).length === 1)
    await standing(db, 0)
    ears.deaf = false
    ears.late()
    await setTimeout(100)
    expect(runs).toEqual(new Map([[1, 1]]))
    await producer.enqueue(job, 2)
    await until('the next one comes another way', () => runs.get(2) === 1)
  })

  it('keeps to what a definition says of its own concurrency when it finds several', async () => {
    let inside = 0
    let most = 0
    const { db, ears, missed, job, producer } = await deafWorker(async () => {
      inside += 1
      most = Math.max(most, inside)
      await setTimeout(20)
      inside -= 1
    }, 1)
    await standing(db, 1)
    ears.deaf = true
    for (let nth = 0; nth < 5; nth += 1) await producer.enqueue(job, nth)
    await until('it was said', () => missed.length > 0)
    ears.deaf = false
    await until('all have ended', async () => (await db.query(FINISHED)).length === 5)
    expect(most).toBe(1)
  })

  it('never stands by if it does not even hear itself', async () => {
    const { db, ears, runs, job, producer } = await deafWorker()
    ears.deaf = true
    await setTimeout(1_500)
    await standing(db, 0)
    await producer.enqueue(job, 1)
    await until('it runs', () => runs.get(1) === 1)
  })

  it('gives back what it never heard of when it leaves', async () => {
    const { db, ears, missed, runs, job, worker, producer } = await deafWorker()
    await standing(db, 1)
    ears.deaf = true
    await producer.enqueue(job, 1)
    await until('it was said', () => missed.length > 0)
    await worker.stop({ graceMs: 0 })
    expect(runs.size).toBe(0)
    expect(await db.query(STATES)).toEqual([{ state: 'waiting', attempt: 0, interruptions: 0 }])
    await standing(db, 0)
  })
})
