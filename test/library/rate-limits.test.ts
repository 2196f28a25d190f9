// Rate limits as a user and an operator meet them: set in the code, changed at run time, seen, and audited.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/index.js'
import { LIBRARIES, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('$name', ({ kind }) => {
  it('are changed at run time, and jobs that are held follow', async () => {
    const { redrive, next, audit } = await openLibrary(kind)
    const rateLimit = { name: 'api', key: 'tenant', limit: 1, intervalMs: 3_600_000 } as const
    const call = defineJob({ name: 'call', queue: 'limited', rateLimit, handler: () => 'called' })
    const worker = redrive.work([call])
    const held = next('job.held')
    await redrive.enqueueMany(
      call,
      ['acme', 'acme', 'acme'].map(tenant => ({ payload: {}, options: { tenant } })),
    )
    const { reason, job, attempt } = await held
    expect(reason).toMatch(/^over its rate limit api for tenant "acme" \(1 per h\): its turn is in about 36\d\d/)
    expect(attempt).toBe(1)
    expect(await redrive.operator.jobs.get(job.id)).toMatchObject({ state: 'held', attempt: 0, holds: 1 })
    expect(await redrive.operator.rateLimits.list({ name: 'api' })).toMatchObject([
      { name: 'api', key: 'acme', held: expect.any(Number) },
    ])

    let left = 2
    const done = new Promise<void>(resolve => {
      redrive.on('job.completed', () => {
        left -= 1
        if (left === 0) resolve()
      })
    })
    await redrive.operator.rateLimits.set(
      'api',
      { limit: 100, intervalMs: 1_000, burst: 10 },
      { actor: 'ada', reason: 'they allowed it', key: 'acme' },
    )
    await done
    expect(await redrive.operator.rateLimits.settings('api')).toMatchObject([
      { name: 'api', key: 'acme', limit: 100, intervalMs: 1_000, burst: 10, setBy: 'ada' },
    ])
    expect(await audit('rate_limit', 'api/acme')).toMatchObject([
      {
        actor: 'ada',
        action: 'set rate limit',
        before: null,
        after: { limit: 100, intervalMs: 1_000, burst: 10 },
        reason: 'they allowed it',
      },
    ])
    await redrive.operator.rateLimits.set('api', null, { key: 'acme' })
    expect(await redrive.operator.rateLimits.settings()).toEqual([])
    await worker.stop()
  })

  it('refuses a bad change and changes nothing', async () => {
    const { redrive } = await openLibrary(kind)
    const { rateLimits } = redrive.operator
    await expect(rateLimits.set('api', { limit: 0, intervalMs: 1_000 })).rejects.toThrow(
      'rate limit api.limit is 0; it must be a whole number from 1 to 1000000',
    )
    await expect(rateLimits.set('', { limit: 1, intervalMs: 1_000 })).rejects.toThrow('The name of the rate limit')
    await expect(rateLimits.list({ limit: 0 })).rejects.toThrow('limit is 0')
    expect(await rateLimits.settings()).toEqual([])
  })
})
