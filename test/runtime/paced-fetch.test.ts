// Services that let only some jobs through are asked one after the other. What one of them gave is at work before the next
// is asked: a question that fails leaves none of its jobs behind.
import { expect, it, onTestFinished } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import { moveBreaker } from '../../src/ledger/breaker.js'
import type { Database } from '../../src/ledger/database.js'
import { defineJob } from '../../src/runtime/definition.js'
import { fetchPaced } from '../../src/runtime/paced-fetch.js'
import { Slots } from '../../src/runtime/slots.js'
import { claimed } from '../support/fake-worker.js'
import { openRuntime } from '../support/runtime.js'

const SERVICES = ['s3', 'smtp'] as const

/** Each may be tried, by a few. */
async function halfOpen(db: Database): Promise<void> {
  const move = { state: 'half_open', fromVersion: 0, openings: 1, shadow: false } as const
  for (const service of SERVICES) {
    await moveBreaker(db, { ...move, service, reason: 'a story', changedBy: 'the fleet' }, null)
  }
}

const jobOf = (service: string, handler = () => {}) => defineJob({ name: 'call', queue: service, service, handler })

it('the jobs of one service are accepted although the question for the next one fails', async () => {
  const { db, runtime } = await openRuntime()
  await halfOpen(db)
  const { services } = runtime
  await services.follow(SERVICES)
  onTestFinished(() => services.stop())
  const slots = new Slots(
    SERVICES.map(service => jobOf(service)),
    10,
    service => services.of(service),
  )
  const job = claimed({ queue: 's3', name: 'call' })
  const accepted: ClaimedJob[] = []
  const asked: (string | undefined)[] = []
  const fetching = fetchPaced(
    services,
    slots,
    0,
    async ([lane]) => {
      asked.push(lane?.queue)
      if (lane?.queue === 'smtp') throw new Error('the ledger is away')
      return [job]
    },
    jobs => void accepted.push(...jobs),
  )
  await expect(fetching).rejects.toThrow('the ledger is away')
  expect(asked).toEqual(['s3', 'smtp'])
  expect(accepted).toEqual([job])
})

it('a worker runs the job that was let through although the permits of another service cannot be asked for', async () => {
  let refused = 0
  const { db, work, enqueue, next, see } = await openRuntime('memory', ({ db }) => ({
    db: {
      ...db,
      query: (statement, params = []) => {
        const takesPermits = statement.text.includes('UPDATE redrive.breaker b SET permits')
        if (!takesPermits || params[0] !== 'smtp') return db.query(statement, params)
        refused += 1
        return Promise.reject(new Error('Connection terminated unexpectedly'))
      },
    },
  }))
  await halfOpen(db)
  const [upload, send] = [jobOf('s3'), jobOf('smtp')]
  const id = await enqueue(upload)
  const completed = next('job.completed', ({ job }) => job.id === id)
  work([upload, send])
  expect((await completed).attempt).toBe(1)
  expect(refused).toBeGreaterThan(0)
  expect(await see(id)).toMatchObject({ state: 'completed', attempt: 1 })
})
