// A worker that lost its lease aborts what runs and its results are refused; a blocked event loop is no excuse.
// Seen red: without the abort in Worker.#lapse, without `if (!ended)` before the handler in startAttempt, and without the
// lease in FENCED.
import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../../src/domain/errors.js'
import { defineJob } from '../../src/runtime/definition.js'
import { rescue } from '../../src/runtime/rescuer.js'
import { gate } from '../support/gate.js'
import { move, openRuntime } from '../support/runtime.js'
import { until } from '../support/until.js'

const LEASE_MS = 300

describe('pitfall 3: the lock is lost while the job runs', () => {
  it('pitfall 3: the handler is aborted when the lease cannot be renewed, before anyone else may take the job', async () => {
    let away = false
    const { db, work, enqueue, next, see } = await openRuntime('memory', ({ db }) => ({
      db: {
        ...db,
        query: (statement, params) =>
          away && statement.text.includes('UPDATE redrive.session')
            ? Promise.reject(new Error('away'))
            : db.query(statement, params),
      },
    }))
    const started = gate()
    const aborted = gate<{ reason: unknown; leftMs: number }>()
    const job = defineJob({
      name: 'long',
      handler: (_, { signal }) => {
        signal.addEventListener('abort', async () => {
          const text = 'SELECT extract(epoch FROM expires_at - now()) * 1000 AS left_ms FROM redrive.session'
          const [row] = await db.query<{ left_ms: number }>({ text })
          aborted.open({ reason: signal.reason, leftMs: Number(row?.left_ms) })
        })
        started.open()
        return new Promise<never>(() => {})
      },
    })
    const id = await enqueue(job)
    work([job], { leaseMs: 3_000 })
    await started.passed
    const lapsed = next('worker.lapsed')
    away = true
    expect(await lapsed).toMatchObject({ reason: 'the lease could not be renewed in time', jobs: [id] })
    const { reason, leftMs } = await aborted.passed
    expect(isRedriveError(reason, 'LEASE_LOST')).toBe(true)
    expect(leftMs, 'nobody else may have it yet').toBeGreaterThan(0)
    await until('it is given back without spending an attempt', async () => (await see(id)).interruptions === 1)
    away = false
  })

  it('pitfall 3: an event loop blocked beyond the lease loses the job, and the late result is refused', async () => {
    const blocked = await openRuntime()
    const other = move(blocked)
    const started = gate()
    const finish = gate<string>()
    let runs = 0
    const job = defineJob({
      name: 'long',
      handler: async () => {
        runs += 1
        if (runs > 1) return 'by the second worker'
        started.open()
        return finish.passed
      },
    })
    const id = await blocked.enqueue(job)
    blocked.work([job], { leaseMs: LEASE_MS, concurrency: 1 })
    await started.passed
    const refused = blocked.next('job.refused')
    const lapsed = blocked.next('worker.lapsed')
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LEASE_MS + 50)
    finish.open('too late')
    await rescue(other.runtime)
    const done = other.next('job.completed')
    other.work([job], { name: 'w2' })
    await done
    expect(await refused).toMatchObject({ job: { id } })
    await lapsed
    const seen = await blocked.see(id)
    expect(seen).toMatchObject({ state: 'completed', result: 'by the second worker', attempt: 2, lost: 1 })
    expect(seen.attempts).toMatchObject([{ outcome: 'lost', decision: 'retry', staleOutcome: expect.any(String) }])
  })

  it('pitfall 3: a job whose lease went while it was being read is not started at all', async () => {
    const reading = gate()
    const goOn = gate()
    let slow = false
    let runs = 0
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'slow',
        validate: async (value: unknown) => {
          if (slow) {
            reading.open()
            await goOn.passed
          }
          return { value }
        },
      },
    }
    const { work, enqueue, next } = await openRuntime()
    const job = defineJob({
      name: 'send',
      schema,
      handler: async () => {
        runs += 1
      },
    })
    await enqueue(job)
    slow = true
    const returned = next('job.returned')
    const worker = work([job])
    await reading.passed
    const stopped = worker.stop({ graceMs: 0 })
    await returned
    goOn.open()
    await stopped
    expect(runs).toBe(0)
  })
})
