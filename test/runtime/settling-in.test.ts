// A worker that starts has its line first: what can wait, waits until there is nothing to do, or for a second.
import { describe, expect, it, vi } from 'vitest'
import { setPolicy } from '../../src/ledger/policy.js'
import { defineJob } from '../../src/runtime/definition.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

describe('a worker that starts', () => {
  it('has settled in as soon as it finds little to do, and says so once', async () => {
    const { work, enqueue, next } = await openRuntime()
    const job = defineJob({ name: 'send', handler: async () => null })
    await enqueue(job)
    const onSettledIn = vi.fn()
    work([job], { concurrency: 10, pollMs: 5, onSettledIn })
    await until('it has settled in', () => onSettledIn.mock.calls.length === 1)
    for (let nth = 0; nth < 3; nth += 1) {
      const done = next('job.completed')
      await enqueue(job)
      await done
    }
    expect(onSettledIn).toHaveBeenCalledTimes(1)
  })

  it('has not settled in while jobs keep coming, although it has done all there are', async () => {
    const clock = manualClock()
    const { work, enqueue } = await openRuntime('memory', () => ({ clock }))
    let done = 0
    const job = defineJob({
      name: 'send',
      handler: async () => {
        done += 1
      },
    })
    for (let nth = 0; nth < 20; nth += 1) await enqueue(job)
    const onSettledIn = vi.fn()
    work([job], { concurrency: 30, onSettledIn })
    await until('all are done', () => done === 20)
    expect(onSettledIn).not.toHaveBeenCalled()
    await clock.advance(900)
    await until('it has settled in before a second is over', () => onSettledIn.mock.calls.length === 1)
  })

  it('has settled in after a second, however much there is to do', async () => {
    const clock = manualClock()
    const { work, enqueue } = await openRuntime('memory', () => ({ clock }))
    const leave = gate()
    let inside = 0
    const job = defineJob({
      name: 'send',
      handler: async () => {
        inside += 1
        await leave.passed
      },
    })
    for (let nth = 0; nth < 20; nth += 1) await enqueue(job)
    const onSettledIn = vi.fn()
    work([job], { concurrency: 3, onSettledIn })
    await until('it is full', () => inside === 3)
    await clock.advance(900)
    expect(onSettledIn).not.toHaveBeenCalled()
    await clock.advance(200)
    expect(onSettledIn).toHaveBeenCalledTimes(1)
    leave.open()
  })

  it('knows what was set at run time before its first job runs', async () => {
    const { work, enqueue, next, db } = await openRuntime()
    const job = defineJob({
      name: 'send',
      retry: { attempts: 5 },
      handler: async () => {
        throw new Error('busy')
      },
    })
    await setPolicy(db, { scope: 'job', target: 'send' }, { policy: { attempts: 1 }, setBy: 'ada' })
    await enqueue(job)
    const dead = next('job.dead')
    work([job])
    expect((await dead).attempt).toBe(1)
  })
})
