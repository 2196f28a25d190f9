// Breakers at work: who learns what, which jobs wait, who may try, and how they are let go. On the embedded ledger with
// time by hand; two processes are two runtimes on one ledger.
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import type { ServiceSettings } from '../../src/domain/breaker.js'
import { TransientError, ValidationError } from '../../src/domain/errors.js'
import type { Events } from '../../src/domain/event.js'
import { type BreakerMove, breakers, moveBreaker } from '../../src/ledger/breaker.js'
import { fixed } from '../../src/policy/backoff.js'
import { Services } from '../../src/runtime/breaker-sync.js'
import { defineJob } from '../../src/runtime/definition.js'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.js'
import { type FreshDatabase, freshDatabase } from '../support/databases.js'
import { type Moving, move } from '../support/runtime.js'
import { until } from '../support/until.js'

type Process = Omit<Moving, keyof FreshDatabase>

interface World {
  readonly fresh: FreshDatabase
  readonly clock: ManualClock
  /** What the service does when it is called; by default it is down. */
  call: (payload: { n: number }) => unknown
  readonly calls: number[]
  /** Another process, and what it told of breakers. */
  process(settings?: ServiceSettings): Process & { readonly moves: Events['breaker.changed'][] }
  /** Lets time pass, in steps that give the ledger its turns. */
  pass(ms: number): Promise<void>
  breaker(): Promise<Awaited<ReturnType<typeof breakers>>['breakers'][number] | undefined>
}

const START = Date.UTC(2031, 4, 1)
let world: World

beforeEach(async () => {
  const fresh = await freshDatabase('memory')
  const clock = manualClock(START)
  Object.defineProperty(fresh.clock, 'now', { get: () => new Date(clock.now()).toISOString() })
  const calls: number[] = []
  world = {
    fresh,
    clock,
    calls,
    call: () => {
      throw new TransientError('the bucket is away')
    },
    process(settings = {}) {
      const process = move(fresh, usual => {
        const parts = { ...usual, clock, random: () => 0.5 }
        return { clock, random: () => 0.5, services: new Services(parts, { s3: settings }) }
      })
      const moves: Events['breaker.changed'][] = []
      process.on('breaker.changed', event => moves.push(event))
      return { ...process, moves }
    },
    async pass(ms) {
      for (let left = ms; left > 0; left -= 50) await clock.advance(Math.min(50, left))
    },
    breaker: async () => (await breakers(fresh.db, ['s3'])).breakers[0],
  }
})

const upload = () =>
  defineJob<{ n: number }>({
    name: 'upload',
    queue: 'files',
    service: 's3',
    retry: { attempts: 3, backoff: fixed({ delayMs: 1_000 }), jitter: false },
    handler: payload => {
      world.calls.push(payload.n)
      return world.call(payload)
    },
  })

const other = (done: number[]) =>
  defineJob<{ n: number }>({ name: 'log', queue: 'files', handler: ({ n }) => void done.push(n) })

async function enqueueMany(process: Process, job: ReturnType<typeof upload>, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) await process.enqueue(job, { n })
}

const opening = (change: Partial<BreakerMove> = {}): BreakerMove => ({
  service: 's3',
  fromVersion: 0,
  state: 'open',
  openMs: 10_000,
  openings: 1,
  shadow: false,
  reason: 'a story',
  changedBy: 'the fleet',
  ...change,
})

/** Passes time until something is so. */
async function passUntil(what: string, look: () => Promise<unknown> | unknown, withinMs = 120_000): Promise<void> {
  for (let passed = 0; passed < withinMs; passed += 250) {
    if (await look()) return
    await world.pass(250)
  }
  throw new Error(`${withinMs} ms passed in vain until ${what}`)
}

const state = async () => (await world.breaker())?.state ?? 'closed'
const counts = async () => {
  const rows = await world.fresh.db.query<{ state: string; jobs: number }>({
    text: "SELECT state::text AS state, count(*)::integer AS jobs FROM redrive.job WHERE name = 'upload' GROUP BY 1",
  })
  return Object.fromEntries(rows.map(row => [row.state, row.jobs]))
}

describe('an outage', () => {
  it('opens the breaker; the jobs wait untouched, and others of the same queue go on', async () => {
    const process = world.process()
    const job = upload()
    const logged: number[] = []
    const log = other(logged)
    await enqueueMany(process, job, 40)
    for (let n = 0; n < 40; n += 1) await process.enqueue(log, { n })
    process.work([job, log], { concurrency: 5 })
    await passUntil('it opened', async () => (await state()) === 'open', 5_000)
    await passUntil('the others are done', () => logged.length === 40, 5_000)
    expect(process.moves).toMatchObject([{ service: 's3', from: 'closed', to: 'open', shadow: false }])
    expect(world.calls.length).toBeLessThan(25)
    const before = world.calls.length
    await world.pass(3_000)
    expect(world.calls.length).toBe(before)
    // Those never tried have spent nothing.
    const [untouched] = await world.fresh.db.query<{ jobs: number }>({
      text: "SELECT count(*)::integer AS jobs FROM redrive.job WHERE name = 'upload' AND attempt = 0 AND state = 'waiting'",
    })
    expect(Number(untouched?.jobs)).toBeGreaterThanOrEqual(15)
  })

  it('kills no job; when the service is back, a few find out and the rest follow slowly', async () => {
    const process = world.process({ breaker: { releasePerSecond: 5, releaseDoublingMs: 2_000 } })
    const job = upload()
    await enqueueMany(process, job, 60)
    const dead: unknown[] = []
    process.on('job.dead', event => dead.push(event))
    process.work([job], { concurrency: 5 })
    await passUntil('it opened again', async () => ((await world.breaker())?.openings ?? 0) >= 3)
    const tried = world.calls.length
    expect(tried).toBeLessThan(30)
    world.call = () => 'stored'
    await passUntil('it closed', async () => (await state()) === 'closed')
    const atClosing = world.calls.length
    await world.pass(1_000)
    expect(world.calls.length - atClosing).toBeLessThanOrEqual(8)
    await passUntil('all are done', async () => Object.keys(await counts()).length === 0)
    expect(dead).toEqual([])
    expect(process.moves.map(({ to }) => to)).toEqual([
      'open',
      'half_open',
      'open',
      'half_open',
      'open',
      'half_open',
      'closed',
    ])
  })

  it('is told from failures of single requests', async () => {
    const process = world.process()
    const job = upload()
    world.call = () => {
      throw new ValidationError('no such bucket name')
    }
    await enqueueMany(process, job, 20)
    process.work([job], { concurrency: 5 })
    await passUntil('all are dead', async () => Object.keys(await counts()).length === 0)
    expect(await state()).toBe('closed')
  })

  it('is not what one job makes that fails again and again: it dies by its policy', async () => {
    const process = world.process()
    const job = { ...upload(), policy: { ...upload().policy, attempts: 10 } }
    await process.enqueue(job, { n: 1 })
    process.work([job])
    await passUntil('it is dead', async () => Object.keys(await counts()).length === 0)
    expect(world.calls.length).toBe(10)
    expect(await state()).toBe('closed')
  })

  it('does not spend the last attempt of a job that fails along with the others', async () => {
    const process = world.process()
    const job = { ...upload(), policy: { attempts: 1 } }
    const dead: unknown[] = []
    process.on('job.dead', event => dead.push(event))
    await enqueueMany(process, job, 20)
    process.work([job], { concurrency: 1 })
    await passUntil('it opened', async () => (await state()) === 'open')
    // Nobody could know of the first one that it would not be the only one.
    expect(dead.length).toBeLessThanOrEqual(1)
  })
})

describe('the fleet', () => {
  it('learns of an opening within a second, and gives back what it had not started', async () => {
    const [, b] = [world.process(), world.process()]
    const job = upload()
    let free: (() => void) | undefined
    world.call = () => new Promise<void>(resolve => (free = resolve))
    await enqueueMany(b, job, 5)
    b.work([job], { concurrency: 1, pollMs: 100 })
    await passUntil('one runs', () => world.calls.length === 1)
    await moveBreaker(world.fresh.db, opening(), null)
    await world.pass(1_000)
    free?.()
    await world.pass(3_000)
    expect(world.calls.length).toBe(1)
    expect(await counts()).toEqual({ waiting: 4 })
  })

  it('finds the breaker as it was when it comes back', async () => {
    await moveBreaker(world.fresh.db, opening(), null)
    const process = world.process()
    const job = upload()
    await enqueueMany(process, job, 5)
    process.work([job], { concurrency: 5 })
    await world.pass(9_000)
    expect(world.calls).toEqual([])
    world.call = () => 'stored'
    await passUntil('it was tried', () => world.calls.length > 0)
  })

  it('lets only so many try, over all processes', async () => {
    const processes = [world.process(), world.process(), world.process()]
    const job = upload()
    const running: (() => void)[] = []
    world.call = () => new Promise<void>(resolve => running.push(resolve))
    await enqueueMany(processes[0] as Process, job, 30)
    await moveBreaker(world.fresh.db, opening({ openMs: 1_000 }), null)
    for (const [index, process] of processes.entries()) process.work([job], { name: `w${index}` })
    await passUntil('it is half-open', async () => (await state()) === 'half_open')
    await world.pass(10_000)
    expect(world.calls.length).toBe(3)
    for (const end of running) end()
    await passUntil('it closed', async () => (await state()) === 'closed')
    world.call = () => 'stored'
    for (const end of running) end()
    await passUntil('all are done', async () => Object.keys(await counts()).length === 0)
  })

  it('lets others try when those that did are gone', async () => {
    const process = world.process({ breaker: { probeTimeoutMs: 5_000 } })
    const job = upload()
    await enqueueMany(process, job, 30)
    await moveBreaker(world.fresh.db, opening({ state: 'half_open', openMs: undefined }), null)
    // As if a worker took all permits and died.
    await world.fresh.db.query({ text: 'UPDATE redrive.breaker SET permits = 3' })
    process.work([job])
    await world.pass(4_000)
    expect(world.calls).toEqual([])
    world.call = () => 'stored'
    await passUntil('all are done', async () => Object.keys(await counts()).length === 0)
  })

  it('closes although one job always fails', async () => {
    const process = world.process()
    const job = upload()
    world.call = ({ n }) => {
      if (n === 0) throw new TransientError('only ever this one')
    }
    await enqueueMany(process, job, 10)
    await moveBreaker(world.fresh.db, opening({ openMs: 1_000 }), null)
    process.work([job])
    await passUntil('it closed', async () => (await state()) === 'closed', 10_000)
    await passUntil('the others are done', async () => Object.values(await counts()).every(jobs => jobs === 1))
  })
})

describe('settings', () => {
  it('in shadow it says what it would do and holds nothing', async () => {
    const process = world.process({ breaker: { shadow: true } })
    const job = upload()
    await enqueueMany(process, job, 30)
    process.work([job], { concurrency: 5 })
    await passUntil('all were tried', () => new Set(world.calls).size === 30)
    await passUntil('it says so', () => process.moves.length > 0)
    expect(process.moves[0]).toMatchObject({ to: 'open', shadow: true })
    await passUntil('all are dead', async () => Object.keys(await counts()).length === 0)
    expect(world.calls.length).toBe(90)
  })

  it('switched off it does nothing', async () => {
    const process = world.process({ breaker: { enabled: false } })
    const job = upload()
    await enqueueMany(process, job, 20)
    process.work([job], { concurrency: 5 })
    await passUntil('all are dead', async () => Object.keys(await counts()).length === 0)
    expect(await world.breaker()).toBeUndefined()
  })
})

describe('without a service', () => {
  it('nothing runs and nothing is asked', async () => {
    const process = world.process()
    const texts: string[] = []
    const { db } = world.fresh
    const query: typeof db.query = (statement, params) => {
      texts.push(statement.text)
      return db.query(statement, params)
    }
    const quiet = move({ db: { ...db, query } }, () => ({ clock: world.clock }))
    const done: number[] = []
    const log = other(done)
    await process.enqueue(log, { n: 1 })
    quiet.work([log])
    await until('it ran', async () => {
      await world.pass(50)
      return done.length === 1
    })
    await world.pass(5_000)
    expect(texts.filter(text => /redrive\.(?:breaker|service_window)/.test(text))).toEqual([])
    onTestFinished(() => quiet.runtime.services.stop())
  })
})

describe('the retry budget', () => {
  it('holds surplus retries; the attempts that ran are spent, and none is dropped', async () => {
    const process = world.process({ breaker: { enabled: false }, budget: { floorPerSecond: 1, windowMs: 10_000 } })
    const job = upload()
    const failedOnce = new Set<number>()
    world.call = ({ n }) => {
      if (failedOnce.has(n)) return
      failedOnce.add(n)
      throw new TransientError('the first time never works')
    }
    const held: Events['job.held'][] = []
    process.on('job.held', event => held.push(event))
    await enqueueMany(process, job, 40)
    process.work([job], { concurrency: 40 })
    await passUntil('all were tried', () => failedOnce.size === 40, 3_000)
    await world.pass(3_000)
    // At least the floor, at most the floor and its burst.
    expect(world.calls.length - 40).toBeLessThanOrEqual(6)
    expect(held.length).toBeGreaterThan(30)
    expect(held[0]?.reason).toContain('retry budget')
    const rows = await world.fresh.db.query<{ attempt: number; holds: number }>({
      text: "SELECT attempt, holds FROM redrive.job WHERE state = 'held'",
    })
    expect(rows.every(row => row.attempt === 1 && row.holds === 1)).toBe(true)
    await passUntil('all are done', async () => Object.keys(await counts()).length === 0)
    expect(world.calls.length).toBe(80)
  })
})
