// Health as a user asks for it, or is told of it.
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob, type Health, type HealthStatus, openRedrive, PermanentError } from '../../src/index.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'

describe.each(LIBRARIES)('health on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind, { retry: { backoff: { type: 'immediate' } } })
  })
  const check = (health: Health, name: string) => health.checks.find(found => found.name === name)

  it('is fine where nothing is yet; then tells what fails, dies and waits for nobody', async () => {
    const { redrive, next } = library
    expect(await redrive.health()).toMatchObject({
      status: 'healthy',
      score: 1,
      reason: 'There is nothing yet: no job was ever seen.',
    })
    const job = defineJob<number>({
      name: 'fails',
      queue: 'ill',
      handler: async () => {
        throw new PermanentError('no')
      },
    })
    const worker = redrive.work([job])
    await worker.ready
    for (let nth = 0; nth < 20; nth += 1) {
      const died = next('job.dead')
      await redrive.enqueue(job, nth)
      await died
    }
    await worker.stop()
    await redrive.enqueue(job, 21)
    const health = await redrive.operator.health()
    expect(health).toMatchObject({ status: 'unhealthy', successRate: 0 })
    expect(check(health, 'success_rate')).toMatchObject({
      status: 'unhealthy',
      reason: expect.stringMatching(/^20 of 20 attempts failed in the last .* \(100 %\)\.$/),
    })
    expect(check(health, 'dead_letters')?.reason).toMatch(/^20 jobs died .*; 20 dead letters are open\.$/)
    expect(check(health, 'workers')?.reason).toMatch(/^No worker takes jobs from queue ill; its oldest job has waited/)
    expect(check(health, 'breakers')?.status).toBe('healthy')
  })

  it('takes thresholds, and refuses what is none before anything is opened', async () => {
    const options = { database: ':memory:', env: {}, logger: silent } as const
    await expect(openRedrive({ ...options, health: { windowMs: 1 } })).rejects.toThrow(/^health.windowMs is 1/)
    await expect(openRedrive({ ...options, healthIntervalMs: 1 })).rejects.toThrow(/^healthIntervalMs is 1/)
  })
})

describe('whoever asked to be told', () => {
  it('is told at every look, with the status before, also when the ledger does not answer; nobody else costs a look', async () => {
    const clock = manualClock()
    const told: [HealthStatus, HealthStatus | undefined][] = []
    let away = false
    let asked = 0
    const { db } = await openLibrary('memory')
    const client = {
      query: async (text: string, params: unknown[]) => {
        asked += 1
        if (away) throw new Error('connect ECONNREFUSED')
        return { rows: await db.query({ text }, params as string[]) }
      },
    }
    const open = async (options: object) => {
      const redrive = await openRedrive({
        database: client,
        schema: 'redrive',
        migrate: false,
        env: {},
        logger: silent,
        clock,
        ...options,
      })
      onTestFinished(() => redrive.close())
    }
    await open({})
    const before = asked
    await clock.advance(60_000)
    expect(asked, 'nobody looks').toBe(before)
    const onHealth = (health: Health, was?: HealthStatus) => {
      told.push([health.status, was])
      if (told.length === 1) throw new Error('a listener that throws')
    }
    await open({ onHealth, healthIntervalMs: 1_000 })
    await until('the first look', () => told.length === 1 || undefined)
    away = true
    await clock.advance(1_000)
    await until('the second look', () => told.length === 2 || undefined)
    away = false
    await clock.advance(1_000)
    await until('the third look', () => told.length === 3 || undefined)
    expect(told).toEqual([
      ['healthy', undefined],
      ['unhealthy', 'healthy'],
      ['healthy', 'unhealthy'],
    ])
  })
})
