// Jobs with a rate limit in a worker, with time by hand: they start at their slots and in order, are held without
// spending an attempt, and go back when the worker stops. What has no limit, or another key, does not wait for them.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { sql } from '../../src/ledger/database.js'
import { rateLimitStates } from '../../src/ledger/rate-limit-setting.js'
import { type AnyJobDefinition, defineJob, type JobOptions } from '../../src/runtime/definition.js'
import { newJob } from '../../src/runtime/producer.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { freshDatabase } from '../support/databases.js'
import { move } from '../support/runtime.js'

const NOTHING = sql`SELECT 1`
const STATES = sql`SELECT state::text AS state, count(*)::integer AS jobs FROM redrive.job GROUP BY state ORDER BY state`
const MARGIN = 1.02

async function open() {
  const fresh = await freshDatabase('memory')
  const clock = manualClock()
  Object.defineProperty(fresh.clock, 'now', { get: () => new Date(clock.now()).toISOString() })
  const moving = move(fresh, () => ({ clock }))
  const starts: { payload: unknown; tenant: string | undefined; at: number; attempt: number; holds: number }[] = []
  const job = <Payload>(options: Partial<JobOptions<Payload, Payload, unknown>>) =>
    defineJob<Payload>({
      name: 'call',
      queue: 'rated',
      handler: (payload, { job: { tenant, holds }, attempt }) => {
        starts.push({ payload, tenant, at: clock.monotonic(), attempt, holds })
      },
      ...options,
    }) as AnyJobDefinition
  /** Lets time pass, and the ledger keep up: it answers in order, so that an answer means that all before it came. */
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 5) {
      for (let answers = 0; answers < 6; answers += 1) await fresh.db.query(NOTHING)
      await clock.advance(5)
    }
  }
  const states = async () =>
    Object.fromEntries(
      (await fresh.db.query<{ state: string; jobs: number }>(STATES)).map(({ state, jobs }) => [state, jobs]),
    )
  return { ...moving, ...fresh, clock, job, starts, pass, states }
}

const payloads = (starts: readonly { payload: unknown }[]) => starts.map(({ payload }) => payload)

describe('a job with a rate limit', () => {
  it('starts at its slot, in order, and is held without spending an attempt until then', async () => {
    const { job, work, enqueue, pass, starts, states, on } = await open()
    const call = job<number>({ rateLimit: { key: 'tenant', limit: 10, intervalMs: 1_000 } })
    for (let number = 0; number < 12; number += 1) await enqueue(call, number, { tenant: 'acme' })
    const held: string[] = []
    on('job.held', ({ reason, attempt }) => held.push(`${attempt}: ${reason}`))
    work([call], { concurrency: 20 })
    await pass(150)
    expect(starts.length).toBeLessThanOrEqual(2)
    expect((await states()).held ?? 0).toBeGreaterThan(0)
    await pass(1_300)
    expect(payloads(starts)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    for (const [index, { at, attempt, holds }] of starts.entries()) {
      expect(at).toBeCloseTo((starts[0]?.at ?? 0) + index * 100 * MARGIN, -1)
      expect(attempt).toBe(1)
      expect(holds).toBeLessThanOrEqual(2)
    }
    expect(held[0]).toMatch(
      /^1: over its rate limit call for tenant "acme" \(10 per s\): its turn is in about \d+ ms; no attempt spent$/,
    )
  })

  it('waits for its own key only', async () => {
    const { job, work, enqueue, pass, starts } = await open()
    const call = job<number>({ rateLimit: { key: 'tenant', limit: 1, intervalMs: 1_000 } })
    for (let number = 0; number < 30; number += 1) await enqueue(call, number, { tenant: 'big' })
    await enqueue(call, 30, { tenant: 'small' })
    await enqueue(call, 31)
    await enqueue(call, 32)
    work([call], { concurrency: 5 })
    await pass(300)
    expect(starts.map(({ tenant }) => tenant).sort()).toEqual(['big', 'small', undefined, undefined])
    await pass(2_000)
    expect(starts.filter(({ tenant }) => tenant === 'big').map(({ payload }) => payload)).toEqual([0, 1, 2])
  })

  it('may start with others at once, as many as the burst says, after a quiet time', async () => {
    const { job, work, enqueue, pass, starts } = await open()
    const call = job<number>({ rateLimit: { limit: 10, intervalMs: 1_000, burst: 5 } })
    for (let number = 0; number < 10; number += 1) await enqueue(call, number)
    work([call])
    await pass(100)
    expect(starts.filter(({ at }) => at === starts[0]?.at)).toHaveLength(4)
  })

  it('has the key that its function says, of the payload as the handler gets it', async () => {
    const { job, work, enqueue, pass, starts, on } = await open()
    const key = ({ account }: { account: number }) => {
      if (account === 3) throw new Error('no such account')
      return account === 0 ? undefined : `account ${account}`
    }
    const call = job<{ account: number }>({ rateLimit: { name: 'accounts', key, limit: 1, intervalMs: 10_000 } })
    const errors: unknown[] = []
    on('error', ({ error }) => errors.push(error))
    for (const account of [1, 1, 2, 0, 0, 3, 3]) await enqueue(call, { account })
    work([call])
    await pass(300)
    expect(
      payloads(starts)
        .map(payload => (payload as { account: number }).account)
        .sort(),
    ).toEqual([0, 0, 1, 2, 3])
    expect(errors.length).toBeGreaterThan(0)
  })

  it('goes back when the worker stops, and keeps its place', async () => {
    const { job, work, enqueue, pass, starts, see, states, next } = await open()
    const call = job<number>({ rateLimit: { limit: 5, intervalMs: 1_000 } })
    const ids: JobId[] = []
    for (let number = 0; number < 3; number += 1) ids.push(await enqueue(call, number))
    const worker = work([call])
    await pass(50)
    expect(starts).toHaveLength(1)
    const returned = next('job.returned')
    await worker.stop()
    expect((await returned).reason).toBe('given back before it started; no attempt spent')
    expect(await states()).toMatchObject({ waiting: 1, held: 1 })
    expect(await see(ids[1] as JobId)).toMatchObject({ state: 'waiting', attempt: 0, attempts: [] })
    work([call], { name: 'w2' })
    await pass(1_000)
    expect(payloads(starts)).toEqual([0, 1, 2])
  })

  it('does not keep jobs without a limit waiting', async () => {
    const { job, work, enqueue, pass, starts } = await open()
    const slow = job<string>({ name: 'slow', rateLimit: { limit: 1, intervalMs: 60_000 } })
    const free = job<string>({ name: 'free' })
    for (let number = 0; number < 20; number += 1) await enqueue(slow, 'slow')
    for (let number = 0; number < 20; number += 1) await enqueue(free, 'free')
    work([slow, free], { concurrency: 4 })
    await pass(200)
    expect(starts.filter(({ payload }) => payload === 'free')).toHaveLength(20)
    expect(starts.filter(({ payload }) => payload === 'slow')).toHaveLength(1)
  })

  it('is claimed only as far as its limit can use it, if it has one key', async () => {
    const { job, work, enqueue, pass, states } = await open()
    const call = job<number>({ rateLimit: { limit: 1, intervalMs: 60_000 } })
    for (let number = 0; number < 100; number += 1) await enqueue(call, number)
    work([call], { concurrency: 50 })
    await pass(1_000)
    expect((await states()).waiting).toBeGreaterThanOrEqual(95)
  })

  it('shares a limit with other jobs by its name', async () => {
    const { job, work, enqueue, pass, starts, db } = await open()
    const rateLimit = { name: 'api', limit: 1, intervalMs: 10_000 }
    const [one, two] = [job<string>({ name: 'one', rateLimit }), job<string>({ name: 'two', rateLimit })]
    await enqueue(one, 'one')
    await enqueue(two, 'two')
    work([one, two])
    await pass(300)
    expect(starts).toHaveLength(1)
    expect(await rateLimitStates(db, { limit: 10 })).toMatchObject([{ name: 'api', key: '', held: 1 }])
  })
})

describe('a worker', () => {
  it('refuses jobs that share a limit and say different things of it', async () => {
    const { job, work } = await open()
    const one = job({ name: 'one', rateLimit: { name: 'api', limit: 1, intervalMs: 1_000 } })
    const two = job({ name: 'two', rateLimit: { name: 'api', limit: 2, intervalMs: 1_000 } })
    expect(() => work([one, two])).toThrow('Rate limit api is "two different ones"')
  })

  it('runs no more at once than it may, however many it claims', async () => {
    const { job, work, enqueue, pass, starts } = await open()
    const [ends, running] = [[] as (() => void)[], { now: 0, most: 0 }]
    const call = job<number>({
      rateLimit: { key: 'tenant', limit: 1, intervalMs: 60_000 },
      handler: payload => {
        starts.push({ payload, tenant: undefined, at: 0, attempt: 1, holds: 0 })
        running.now += 1
        running.most = Math.max(running.most, running.now)
        return new Promise<void>(resolve => {
          ends.push(() => {
            running.now -= 1
            resolve()
          })
        })
      },
    })
    for (let number = 0; number < 40; number += 1) await enqueue(call, number, { tenant: 'big' })
    for (let number = 0; number < 40; number += 1) await enqueue(call, number)
    for (let number = 0; number < 40; number += 1) await enqueue(call, number, { tenant: `small ${number}` })
    work([call], { concurrency: 4 })
    for (let round = 0; round < 40 && starts.length < 81; round += 1) {
      await pass(20)
      for (const end of ends.splice(0)) end()
    }
    await pass(100)
    for (const end of ends.splice(0)) end()
    expect(running.most).toBe(4)
    expect(starts.length).toBe(81)
  })

  it('holds the many jobs of one key fast, so that those behind them get their turn', async () => {
    const { job, work, enqueue, runtime, pass, starts, states } = await open()
    const call = job<number>({ rateLimit: { key: 'tenant', limit: 1, intervalMs: 60_000 } })
    const many = Array.from({ length: 2_000 }, (_, number) => newJob(runtime.clock, call, number, { tenant: 'big' }))
    await runtime.transport.publish(many)
    await enqueue(call, 2_000, { tenant: 'small' })
    work([call], { concurrency: 5 })
    await pass(200)
    expect(payloads(starts)).toEqual([0, 2_000])
    expect(await states()).toEqual({ held: 1_999 })
  })
})

describe('defineJob', () => {
  it.each([
    [{ limit: 0, intervalMs: 1_000 }, 'rateLimit of job x.limit is 0'],
    [{ limit: 1, intervalMs: 1_000, key: 'team' }, 'rateLimit of job x.key is "team"'],
    [{ limit: 1, intervalMs: 1_000, name: 'a\nb' }, 'The name of the rate limit of job x'],
  ])('refuses the rate limit %j', (rateLimit, message) => {
    expect(() => defineJob({ name: 'x', rateLimit: rateLimit as never })).toThrow(message)
  })
})
