// A job that kills its worker is counted apart and buried as poison after three; shutdowns and innocent neighbours never
// count. Seen red: without `losses >= policy.lostLimit` in decide, with every orphan blamed in the rescuer, and
// with suspects that run unmarked.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { markStarted } from '../../src/ledger/claim.js'
import { getDeadLetter } from '../../src/ledger/dead-letter.js'
import { promote } from '../../src/ledger/promote.js'
import { defineJob } from '../../src/runtime/definition.js'
import { rescue } from '../../src/runtime/rescuer.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'
import { aJob, aSession, take } from '../support/story.js'
import { until } from '../support/until.js'

const LEASE_MS = 15_000

async function story() {
  const moving = await openRuntime()
  const { db, clock, runtime } = moving
  clock.now = '2030-01-01T00:00:00Z'
  /** A worker takes what is waiting, starts what it is told to, and dies; recovery comes after its lease. */
  const dieWith = async (...started: readonly JobId[]) => {
    const jobs = await take(db, await aSession(db, LEASE_MS))
    for (const job of jobs) if (job.suspect && started.includes(job.id)) await markStarted(db, job)
    clock.advance(LEASE_MS + 1)
    const result = await rescue(runtime)
    clock.advance(600_000)
    await promote(db, 1_000, null)
    return result
  }
  return { ...moving, dieWith }
}

describe('pitfall 8: a job that kills its worker kills the next one too', () => {
  it('pitfall 8: buried as poison after three workers, of kind lost, whatever attempts are left', async () => {
    const { db, runtime, see, dieWith, on } = await story()
    const killer = aJob({ maxAttempts: 50 })
    await runtime.transport.publish([killer])
    const deaths: string[] = []
    on('job.dead', ({ job, reason }) => deaths.push(`${job.id}: ${reason}`))
    expect(await dieWith(killer.id)).toEqual({ rescued: 1, buried: 0 })
    expect(await see(killer.id)).toMatchObject({ state: 'waiting', lost: 1 })
    expect(await dieWith(killer.id)).toEqual({ rescued: 1, buried: 0 })
    expect(await see(killer.id)).toMatchObject({ state: 'waiting', lost: 2 })
    expect(await dieWith(killer.id)).toEqual({ rescued: 1, buried: 1 })
    expect(deaths, 'and it is told').toEqual([`${killer.id}: poison: its worker died 3 times while it ran`])
    expect(await getDeadLetter(db, killer.id)).toMatchObject({
      kind: 'lost',
      outcome: 'lost',
      errorType: 'WorkerLost',
      reason: 'poison: its worker died 3 times while it ran',
      message: 'its worker (worker-1) died or lost its lease during attempt 3',
    })
    expect((await see(killer.id)).attempts).toMatchObject([
      { outcome: 'lost' },
      { outcome: 'lost' },
      { outcome: 'lost' },
    ])
  })

  it('pitfall 8: a neighbour that was only waiting in the buffer is not blamed again, and is never buried', async () => {
    const { runtime, see, dieWith } = await story()
    const [killer, neighbour] = [aJob({ maxAttempts: 50 }), aJob({ maxAttempts: 50 })]
    await runtime.transport.publish([killer, neighbour])
    await dieWith(killer.id)
    await dieWith(killer.id)
    await dieWith(killer.id)
    expect((await see(killer.id)).state).toBe('dead')
    expect(await see(neighbour.id), 'once, when nobody could know').toMatchObject({
      state: 'waiting',
      lost: 1,
      attempt: 1,
    })
  })

  it('pitfall 8: a suspect is not run before its start is on record', async () => {
    const { db, runtime, see, dieWith, work, clock, next } = await story()
    const suspect = aJob()
    await runtime.transport.publish([suspect])
    await dieWith()
    clock.now = null
    const started = gate<unknown>()
    const job = defineJob({
      name: 'send',
      queue: 'mail',
      handler: async () => {
        started.open((await db.query({ text: 'SELECT started FROM redrive.job' }))[0])
      },
    })
    const done = next('job.completed')
    work([job])
    expect(await started.passed).toEqual({ started: true })
    await done
    expect(await see(suspect.id)).toMatchObject({ state: 'completed', lost: 1 })
  })

  it('pitfall 8: a shutdown never counts as a loss', async () => {
    const { see, work, enqueue } = await openRuntime()
    const job = defineJob({ name: 'long', handler: () => new Promise<never>(() => {}) })
    const id = await enqueue(job)
    for (let deploy = 0; deploy < 4; deploy += 1) {
      const worker = work([job])
      await worker.ready
      await until('it runs', () => worker.active > 0)
      await worker.stop({ graceMs: 0 })
    }
    expect(await see(id)).toMatchObject({ state: 'waiting', attempt: 0, lost: 0, interruptions: 4 })
  })
})
