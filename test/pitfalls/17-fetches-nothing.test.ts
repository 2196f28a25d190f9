// A worker goes on fetching after every connection was cut, and a fetch that hangs is given up and announced.
// Seen red: without the timer of Worker.#withinLimit, and with a loop that stops at its first error.
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob, openRedrive } from '../../src/index.js'
import { administer, freshDatabase } from '../support/databases.js'
import { claimed, pretendWorker } from '../support/fake-worker.js'
import { silent } from '../support/runtime.js'

describe('pitfall 17: a worker looks alive but fetches nothing', () => {
  it('pitfall 17: it works on after every connection was terminated, again and again', async () => {
    const { url = '' } = await freshDatabase('server')
    const redrive = await openRedrive({ database: url, env: {}, logger: silent, pollMs: 100 })
    onTestFinished(() => redrive.close())
    const job = defineJob<number, number, number>({ name: 'send', handler: async nth => nth })
    const worker = redrive.work([job])
    await worker.ready
    for (let nth = 0; nth < 3; nth += 1) {
      const text =
        'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()'
      await administer(url, text)
      const done = new Promise<void>(resolve => void redrive.on('job.completed', () => resolve()))
      await redrive.enqueue(job, nth).catch(() => redrive.enqueue(job, nth))
      await done
    }
    expect(worker.lastFetchAgoMs).toBeLessThan(5_000)
  })

  it('pitfall 17: a fetch that hangs is announced and given up; the next one is made', async () => {
    const ran: string[] = []
    const { clock, on, ledger, worker } = pretendWorker(async (_, { job }) => void ran.push(job.id))
    const stalled: number[] = []
    on('worker.stalled', ({ sinceMs }) => stalled.push(sinceMs))
    await clock.advance(1_000)
    expect(worker.lastFetchAgoMs).toBeLessThanOrEqual(1_000)
    ledger.fetch = () => new Promise(() => {})
    await clock.advance(44_000)
    const { fetches } = ledger
    expect(stalled).toEqual([])
    ledger.fetch = async () => []
    await clock.advance(5_000)
    expect(stalled).toHaveLength(1)
    expect(stalled[0]).toBeGreaterThanOrEqual(45_000)
    expect(ledger.fetches).toBeGreaterThan(fetches)
    let given = false
    ledger.fetch = async () => {
      if (given) return []
      given = true
      return [claimed()]
    }
    await clock.advance(5_000)
    expect(ran).toEqual([claimed().id])
    const stopping = worker.stop()
    await clock.advance(1_000)
    await stopping
  })
})
