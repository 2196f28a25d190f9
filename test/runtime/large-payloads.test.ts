// Jobs with large payloads, as a worker runs them: in order, beside small ones, under rate limits, and never without what they carry.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { sql } from '../../src/ledger/database.js'
import { defineJob, type Handler } from '../../src/runtime/definition.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { freshDatabase } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

interface Parcel {
  readonly nth: number
  readonly fill: string
}

const parcel = (nth: number, chars: number): Parcel => ({ nth, fill: String(nth).padStart(chars, '.') })
const UNENDED = sql`SELECT state::text AS state, attempt, interruptions, lost FROM redrive.job ORDER BY line`
const PAYLOADS_LEFT = sql`SELECT count(*)::integer AS count FROM redrive.payload`

const aJob = (handler: Handler<Parcel, unknown>, more: object = {}) =>
  defineJob<Parcel>({ name: 'send', queue: 'mail', handler, ...more })

/** What is asked for when payloads are read, and a way to come between. */
function reading(between: (ask: () => Promise<void>) => Promise<void>) {
  return ({ transport }: Runtime): Partial<Runtime> => ({
    transport: {
      ...transport,
      readPayloads: (jobs, onRead) => between(async () => transport.readPayloads?.(jobs, onRead)),
    },
  })
}

describe.each(['server', 'memory'] as const)('%s', kind => {
  it('each runs once with its own payload, in the order of the line, large beside small', async () => {
    const { work, runtime, db } = await openRuntime(kind)
    const ran: Parcel[] = []
    const all = gate()
    const job = aJob(async payload => {
      ran.push(payload)
      if (ran.length === parcels.length) all.open()
    })
    const parcels = Array.from({ length: 400 }, (_, nth) => parcel(nth, nth % 5 === 0 ? 10 : 1 + nth * 60))
    await runtime.transport.publish(
      parcels.map((payload, nth) => ({
        id: `018f0000-0000-7000-8000-${String(nth).padStart(12, '0')}` as never,
        queue: 'mail',
        name: 'send',
        priority: 5,
        payloadText: JSON.stringify(payload),
      })),
    )
    work([job], { concurrency: 1 })
    await all.passed
    expect(ran).toEqual(parcels)
    await until('all have ended', async () => (await db.query(UNENDED)).length === 0)
    expect(await db.query(PAYLOADS_LEFT), 'kept with their history').toMatchObject([{ count: expect.any(Number) }])
  })

  it('a rate limit whose key is in the payload knows it', async () => {
    const { work, enqueue, next, see } = await openRuntime(kind)
    const job = aJob(async () => {}, {
      rateLimit: {
        name: 'api',
        key: ({ nth }: Parcel) => `customer ${nth}`,
        limit: 1,
        intervalMs: 3_600_000,
      },
    })
    const held = next('job.held')
    const done = next('job.completed')
    const ids = [await enqueue(job, parcel(7, 5_000)), await enqueue(job, parcel(7, 5_000))]
    work([job])
    expect((await held).reason).toMatch(/^over its rate limit api for "customer 7"/)
    await done
    const states = await Promise.all(ids.map(async id => (await see(id)).state))
    expect(states.toSorted()).toEqual(['completed', 'held'])
  })

  it('what was not read when a worker leaves goes back, and no attempt is spent', async () => {
    const asked = gate()
    const never = gate()
    const { work, enqueue, db } = await openRuntime(
      kind,
      reading(async () => {
        asked.open()
        await never.passed
      }),
    )
    let ran = 0
    const job = aJob(() => {
      ran += 1
    })
    for (const nth of [1, 2]) await enqueue(job, parcel(nth, 5_000))
    const worker = work([job])
    await asked.passed
    expect(await db.query(UNENDED)).toMatchObject([{ state: 'active' }, { state: 'active' }])
    await worker.stop()
    const waiting = { state: 'waiting', attempt: 0, interruptions: 0, lost: 0 }
    expect(await db.query(UNENDED)).toEqual([waiting, waiting])
    expect(ran).toBe(0)
    never.open()
  })

  it('a payload that could not be read is read later, and the error is told', async () => {
    let failures = 0
    const { work, enqueue, next, see } = await openRuntime(
      kind,
      reading(async ask => {
        failures += 1
        if (failures < 3) throw new Error('the connection broke')
        await ask()
      }),
    )
    const done = next('job.completed')
    const told = next('error')
    const job = aJob(async ({ fill }) => fill.length)
    const id = await enqueue(job, parcel(1, 5_000))
    work([job])
    expect(await told).toMatchObject({ where: 'w1: reading payloads', error: { message: 'the connection broke' } })
    await done
    expect(await see(id)).toMatchObject({ state: 'completed', attempt: 1, result: 5_000 })
  })
})

it('are waited for on a slow way: what is coming does not go back after a second', async () => {
  const slow = gate()
  let questions = 0
  const { work, enqueue, next, see } = await openRuntime(
    'server',
    reading(async ask => {
      questions += 1
      await slow.passed
      await ask()
    }),
  )
  const done = next('job.completed')
  const job = aJob(async () => {})
  const id = await enqueue(job, parcel(1, 5_000))
  work([job], { pollMs: 20 })
  await until('it was asked for', () => questions === 1)
  const { claimedAt } = (await see(id)) as { claimedAt?: unknown }
  const since = performance.now()
  await until('two looks for work later than a second', () => performance.now() - since > 1_200)
  expect((await see(id)) as { claimedAt?: unknown }).toMatchObject({ state: 'active', claimedAt })
  slow.open()
  await done
  expect(questions).toBe(1)
})

it('come all at once on a pool that is yours, which may be of another version', async () => {
  const { url } = await freshDatabase('server')
  const pool = new pg.Pool({ connectionString: url, max: 3 })
  const redrive = await openRedrive({ database: pool, env: { LOG_LEVEL: 'silent' }, pollMs: 20 })
  onTestFinished(async () => {
    await redrive.close({ graceMs: 0 })
    await pool.end()
  })
  const ran = gate<Parcel>()
  const job = aJob(payload => ran.open(payload))
  await redrive.enqueue(job, parcel(1, 5_000))
  redrive.work([job])
  expect(await ran.passed).toEqual(parcel(1, 5_000))
})

it('come although a limit for queries is in the address', async () => {
  const { url } = await freshDatabase('server')
  const redrive = await openRedrive({ database: `${url}?query_timeout=20000`, env: { LOG_LEVEL: 'silent' } })
  onTestFinished(() => redrive.close({ graceMs: 0 }))
  const ran = gate<Parcel>()
  const job = aJob(payload => ran.open(payload))
  await redrive.enqueue(job, parcel(1, 5_000))
  redrive.work([job])
  expect(await ran.passed).toEqual(parcel(1, 5_000))
})
