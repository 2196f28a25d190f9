// A worker takes what it has room for, in the order of the line, and leaves alone what is not its own.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { defineJob } from '../../src/runtime/definition.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import type { PostgresTransport } from '../../src/transport/transports/postgres.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

/** Handlers that wait at a gate, and a record of how many were inside at once. */
function crowd() {
  const leave = gate()
  const seen = { inside: 0, most: 0, names: [] as string[] }
  const handler = async (payload: unknown) => {
    seen.inside += 1
    seen.most = Math.max(seen.most, seen.inside)
    seen.names.push((payload as { name: string }).name)
    await leave.passed
    seen.inside -= 1
  }
  return { leave, seen, handler }
}

/** A transport that hands out more than was asked for: the rest waits in the worker's buffer. */
const greedy =
  (limit: number) =>
  ({ transport }: Runtime): { transport: PostgresTransport } => ({
    transport: {
      ...transport,
      consume(options) {
        const consumer = transport.consume(options)
        return {
          ...consumer,
          fetch: demand =>
            consumer.fetch(
              demand.map(lane => ({ ...lane, limit })),
              limit,
            ),
        }
      },
    },
  })

describe('a worker', () => {
  it('runs at most as many jobs at once as its concurrency', async () => {
    const { work, enqueue, next, see } = await openRuntime()
    const { leave, seen, handler } = crowd()
    const job = defineJob({ name: 'send', handler })
    const ids: JobId[] = []
    for (let nth = 0; nth < 8; nth += 1) ids.push(await enqueue(job, { name: `job ${nth}` }))
    const worker = work([job], { concurrency: 3 })
    await until('three run', () => seen.inside === 3)
    expect(worker.active).toBe(3)
    const last = next('job.completed', ({ job }) => job.id === ids[7])
    leave.open()
    await last
    expect(seen.most).toBe(3)
    expect((await see(ids[0] as JobId)).state).toBe('completed')
  })

  it('runs at most as many of one job at once as that job allows, and fills up with others', async () => {
    const { work, enqueue, next } = await openRuntime()
    const narrow = crowd()
    const wide = crowd()
    const one = defineJob({ name: 'one at a time', concurrency: 1, handler: narrow.handler })
    const many = defineJob({ name: 'many', handler: wide.handler })
    for (let nth = 0; nth < 3; nth += 1) await enqueue(one, { name: `narrow ${nth}` }, { priority: 9 })
    for (let nth = 0; nth < 3; nth += 1) await enqueue(many, { name: `wide ${nth}` })
    work([one, many], { concurrency: 4 })
    await until('the worker is full', () => narrow.seen.inside + wide.seen.inside === 4)
    expect([narrow.seen.inside, wide.seen.inside]).toEqual([1, 3])
    const last = next('job.completed', ({ job }) => job.name === one.name && narrow.seen.names.length === 3)
    narrow.leave.open()
    wide.leave.open()
    await last
    expect(narrow.seen.most).toBe(1)
  })

  it('starts the most urgent first, and equals in the order they came', async () => {
    const { work, enqueue, next } = await openRuntime()
    const { leave, seen, handler } = crowd()
    leave.open()
    const job = defineJob({ name: 'send', handler })
    await enqueue(job, { name: 'low' }, { priority: 0 })
    await enqueue(job, { name: 'first' })
    await enqueue(job, { name: 'second' })
    await enqueue(job, { name: 'urgent' }, { priority: 10 })
    const last = next('job.completed', () => seen.names.length === 4)
    work([job], { concurrency: 1 })
    await last
    expect(seen.names).toEqual(['urgent', 'first', 'second', 'low'])
  })

  it('leaves a job name that it has no handler for alone: not taken, not failed', async () => {
    const { work, enqueue, next, see } = await openRuntime()
    const known = defineJob({ name: 'known', handler: async () => null })
    const stranger = await enqueue(defineJob({ name: 'of another team' }), {}, { priority: 10 })
    await enqueue(known)
    const done = next('job.completed')
    work([known])
    await done
    expect(await see(stranger)).toMatchObject({ state: 'waiting', attempt: 0, attempts: [] })
  })

  it('finds a job that is enqueued while it is idle, without waiting for its poll', async () => {
    const { work, enqueue, next } = await openRuntime()
    const job = defineJob({ name: 'send', handler: async () => null })
    const worker = work([job], { pollMs: 60_000 })
    await worker.ready
    await until('it has looked', () => worker.lastFetchAgoMs !== undefined)
    const done = next('job.completed')
    await enqueue(job)
    await done
  })

  it('runs a delayed job when it is due', async () => {
    const { work, enqueue, next, see } = await openRuntime()
    const job = defineJob({ name: 'send', handler: async () => 'sent' })
    const done = next('job.completed')
    const id = await enqueue(job, {}, { delayMs: 100 })
    expect((await see(id)).state).toBe('scheduled')
    work([job])
    await done
    const { finishedAt, createdAt, result } = await see(id)
    expect(result).toBe('sent')
    expect((finishedAt as Date).getTime() - createdAt.getTime()).toBeGreaterThanOrEqual(100)
  })

  it('takes nothing from a paused queue, gives back what it had not started, and goes on when it is resumed', async () => {
    const { db, runtime, work, enqueue, next, see } = await openRuntime('memory', greedy(5))
    const { leave, seen, handler } = crowd()
    const job = defineJob({ name: 'send', queue: 'mail', handler })
    const ids: JobId[] = []
    for (let nth = 0; nth < 5; nth += 1) ids.push(await enqueue(job, { name: `job ${nth}` }))
    await pauseQueue(db, 'mail', 'a test')
    await resumeQueue(db, 'mail', null)
    work([job], { concurrency: 1 })
    await until('one runs and four are buffered', async () => {
      const states = await Promise.all(ids.map(id => see(id)))
      return states.every(({ state }) => state === 'active') && seen.inside === 1
    })
    await pauseQueue(db, 'mail', 'a test')
    const returned = next('job.returned')
    await returned
    const after = await until('all four are back', async () => {
      const jobs = await Promise.all(ids.map(id => see(id)))
      return jobs.filter(({ state }) => state === 'waiting').length === 4 && jobs
    })
    expect(after.map(({ attempt, interruptions }) => ({ attempt, interruptions }))).toEqual([
      { attempt: 1, interruptions: 0 },
      ...Array(4).fill({ attempt: 0, interruptions: 0 }),
    ])
    const finished = next('job.completed')
    leave.open()
    await finished
    expect(seen.names).toHaveLength(1)
    const last = next('job.completed', () => seen.names.length === 5)
    await resumeQueue(db, 'mail', null)
    runtime.transport.wake('mail')
    await last
  })
})
