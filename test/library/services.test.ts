// Services as a user meets them: at the operator's desk, and around calls awaited in place.
import { describe, expect, it, onTestFinished } from 'vitest'
import { defineJob, isRedriveError, openRedrive, retryable, TransientError, ValidationError } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('services on $name', ({ kind }) => {
  let library: Library
  let names = 0
  const fresh = () => `service-${++names}`

  beforeFirst(async () => {
    library = await openLibrary(kind, {
      services: { tuned: { breaker: { consecutiveFailures: 2, openMs: 60_000 }, budget: { share: 0.5 } } },
    })
  })

  const desk = () => library.redrive.operator.services

  it('can be held and released before any worker exists; each is audited and told', async () => {
    const service = fresh()
    const told = library.next('breaker.changed', event => event.service === service)
    const isolated = await desk().isolate(service, { actor: 'ann', reason: 'the provider asked for it' })
    expect(isolated).toMatchObject({
      state: 'isolated',
      reason: 'the provider asked for it',
      changedBy: 'ann',
      version: 1,
    })
    expect(await told).toMatchObject({ from: 'closed', to: 'isolated', shadow: false })
    expect(await desk().release(service, { actor: 'bob' })).toMatchObject({ state: 'closed', changedBy: 'bob' })
    expect(await library.audit('service', service)).toMatchObject([
      { action: 'release', actor: 'bob', before: { state: 'isolated' }, after: { state: 'closed' } },
      { action: 'isolate', actor: 'ann', before: { state: 'closed' }, after: { state: 'isolated' } },
    ])
  })

  it('that are held keep their jobs in line until they are released', async () => {
    const service = fresh()
    const ran: number[] = []
    const job = defineJob<{ n: number }>({ name: service, service, handler: ({ n }) => void ran.push(n) })
    await desk().isolate(service)
    for (const n of [1, 2, 3]) await library.redrive.enqueue(job, { n })
    const worker = library.redrive.work([job])
    await worker.ready
    const done = library.next('job.completed', ({ job: { name } }) => name === service)
    expect((await library.redrive.operator.queues.statistics())[0]).toMatchObject({ waiting: 3 })
    expect(ran).toEqual([])
    await desk().release(service)
    await done
    await worker.stop()
  })

  it('are listed with what was seen of them and what holds for them', async () => {
    const service = fresh()
    const job = defineJob({ name: service, service, handler: () => 'done' })
    const done = library.next('job.completed', ({ job: { name } }) => name === service)
    await library.redrive.enqueue(job, {})
    const worker = library.redrive.work([job])
    await done
    await worker.stop()
    await expect
      .poll(async () => (await desk().list()).find(found => found.service === service), { timeout: 5_000 })
      .toMatchObject({ state: 'closed', version: 0, counts: { firstAttempts: 1, succeeded: 1, failed: 0, retries: 0 } })
    expect((await desk().get('tuned')).settings).toMatchObject({
      breaker: { consecutiveFailures: 2, probes: 3 },
      budget: { share: 0.5 },
    })
  })

  it('follow settings that a person changes at run time: checked, versioned, audited', async () => {
    const service = fresh()
    expect(await desk().configure(service, { breaker: { consecutiveFailures: 1 } }, { actor: 'ann' })).toBe(1)
    await expect(desk().configure(service, { breaker: { probes: 0 } })).rejects.toThrow(
      `settings of ${service}.breaker.probes is 0; it must be a whole number from 1 to 1000`,
    )
    expect(await desk().get(service)).toMatchObject({
      override: { breaker: { consecutiveFailures: 1 } },
      overrideVersion: 1,
      settings: { breaker: { consecutiveFailures: 1, probes: 3 } },
    })
    const opened = library.next('breaker.changed', event => event.service === service)
    const call = retryable(async () => Promise.reject(new TransientError('down')), {
      name: service,
      service,
      redrive: library.redrive,
      retry: { attempts: 1 },
    })
    await expect(call()).rejects.toThrow('down')
    expect(await opened).toMatchObject({ to: 'open' })
    expect(await desk().configure(service, null)).toBe(2)
    const actions = (await library.audit('service', service)).map(({ action, after }) => ({ action, after }))
    expect(actions).toEqual([
      { action: 'configure', after: null },
      { action: 'configure', after: { breaker: { consecutiveFailures: 1 } } },
    ])
  })

  it('must have a name', async () => {
    await expect(desk().isolate('')).rejects.toThrow('service is ""')
  })

  describe('called in place', () => {
    it('are not called while they are held, and the error says so', async () => {
      const service = fresh()
      let calls = 0
      const call = retryable(async () => ++calls, { name: service, service, redrive: library.redrive })
      expect(await call()).toBe(1)
      await desk().isolate(service, { reason: 'maintenance' })
      // Told directly in this process; the answer of the ledger is awaited.
      await expect
        .poll(() => call().catch(error => error.message), { timeout: 5_000 })
        .toContain('is isolated (maintenance)')
      const before = calls
      const error = await call().catch(error => error)
      expect(isRedriveError(error, 'SERVICE_HELD') && error.details).toEqual({ service, state: 'isolated' })
      expect(calls).toBe(before)
    })

    it('open the breaker, and then fail fast in the middle of a call, without a dead letter', async () => {
      const service = fresh()
      await desk().configure(service, { breaker: { consecutiveFailures: 3, openMs: 60_000 } })
      let calls = 0
      const job = defineJob({
        name: service,
        queue: service,
        service,
        retry: { attempts: 50, backoff: { type: 'fixed', delayMs: 20 } },
        handler: () => {
          calls += 1
          throw new TransientError('down')
        },
      })
      const calling = [1, 2, 3].map(() => library.redrive.perform(job, {}).catch(error => error))
      for (const error of await Promise.all(calling)) {
        expect(isRedriveError(error, 'SERVICE_HELD')).toBe(true)
        expect(error.cause).toMatchObject({ message: 'down' })
      }
      expect(calls).toBeGreaterThanOrEqual(3)
      expect(calls).toBeLessThan(150)
      expect(await library.redrive.operator.deadLetters.list({ queue: service })).toMatchObject({ items: [] })
    })

    it('are not judged by the faults of a request', async () => {
      const service = fresh()
      const call = retryable(async () => Promise.reject(new ValidationError('no')), {
        name: service,
        service,
        redrive: library.redrive,
      })
      for (let n = 0; n < 10; n += 1) await expect(call()).rejects.toThrow('no')
      expect(await desk().get(service)).toMatchObject({ state: 'closed' })
    })
  })
})

describe('another process', () => {
  it.each([
    { listen: true, what: 'is told' },
    { listen: false, what: 'finds out where nobody can be told' },
  ])('$what of a service that is held, within a second', async ({ listen }) => {
    const { redrive, url } = await openLibrary('server')
    const another = await openRedrive({ database: url as string, listen, env: {} })
    onTestFinished(() => another.close({ graceMs: 0 }))
    const job = defineJob({ name: 'upload', service: 's3', handler: () => 'stored' })
    const worker = another.work([job])
    await worker.ready
    expect(await another.perform(job, {})).toBe('stored')
    await redrive.operator.services.isolate('s3')
    const held = () =>
      another.perform(job, {}).then(
        () => 'called',
        error => error.code,
      )
    await expect.poll(held, { timeout: 1_000, interval: 50 }).toBe('SERVICE_HELD')
  })
})
