// What becomes of an operation: who fails how, how long it waits, who judges, and what a program can do about it.
import { beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { operation } from '../../../apps/providers/provider.js'
import { ProviderWorker } from '../../../apps/providers/provider-worker.js'
import type { ProviderRequest } from '../../../apps/providers/request.js'
import { type ClassifierAnswer, RateLimitedError } from '../../../src/index.js'
import { openScene, QUICK, type Scene } from './support/scene.js'

const ask = (resourceType: string, name: string, request: ProviderRequest['request'] = {}): ProviderRequest => ({
  provider: 'ITL.Test',
  resourceType,
  operation: name,
  request,
})

/** So long that nothing waits for it. */
const DELAYS = { PROVIDER_RETRY_DELAYS: `${QUICK.PROVIDER_RETRY_DELAYS},move=2000,list=3000` }
/** For a machine that is busy with other things. */
const LONG = 120_000
let scene: Scene
beforeAll(async () => {
  const env = { MAX_RETRY_ATTEMPTS: '4' }
  scene = await openScene(
    { ...QUICK, ...DELAYS, PROVIDER_RETRY_ATTEMPTS: 'once=1,late=1000' },
    { env, random: () => 0.5 },
  )
}, LONG)

describe('an operation', { timeout: LONG }, () => {
  it('is run with its request, as its schema reads it', async () => {
    const schema = z.object({ name: z.string(), size: z.number().default(3) })
    scene.worker.registry.register('ITL.Test/Echo', {
      create: operation({
        schema,
        run: async ({ name, size }, { provider, operation: asked, attempt, job }) => ({
          ...{ name, size, provider, asked, attempt },
          priority: job.priority,
        }),
      }),
    })
    expect(await scene.completed({ ...ask('Echo', 'create', { name: 'a' }), priority: 9 })).toEqual({
      name: 'a',
      size: 3,
      provider: 'ITL.Test/Echo',
      asked: 'create',
      attempt: 1,
      priority: 9,
    })
  })

  it('is tried again while its provider is not there, and completes when it has come', async () => {
    const { id } = await scene.desk.submit(ask('Late', 'late'))
    const { failure, delayMs } = await scene.next('job.retrying', id)
    scene.worker.registry.register('ITL.Test/Late', { late: () => 'here' })
    expect(failure).toMatchObject({ kind: 'transient', message: 'No provider found for ITL.Test/Late' })
    expect(delayMs).toBe(0)
    await scene.next('job.completed', id)
  })

  it('dies at once where nothing can heal', async () => {
    scene.worker.registry.register('ITL.Test/Strict', {
      create: { schema: z.object({ name: z.string() }), run: () => 1 },
      get: () => {
        throw Object.assign(new Error('no role on this vault'), { status: 403 })
      },
    })
    const death = async (name: string) => {
      const { kind, message, totalAttempts } = await scene.died(ask('Strict', name))
      return { kind, message, totalAttempts }
    }
    expect(await death('explode')).toEqual({
      kind: 'permanent',
      message: 'Provider ITL.Test/Strict has no operation "explode"; it has create, get',
      totalAttempts: 1,
    })
    expect(await death('create')).toEqual({
      kind: 'validation',
      message: expect.stringContaining('The request to create ITL.Test/Strict is not valid: name: '),
      totalAttempts: 1,
    })
    expect(await death('get')).toEqual({ kind: 'authentication', message: 'no role on this vault', totalAttempts: 1 })
  })

  it.each<[string, unknown]>([
    ['no provider', { resourceType: 'A', operation: 'get' }],
    ['a bad namespace', { ...ask('A', 'get'), provider: 'ITL/Core' }],
    ['a bad operation', ask('A', 'drop table')],
    ['a request that is no object', { ...ask('A', 'get'), request: [] }],
    ['a priority of 11', { ...ask('A', 'get'), priority: 11 }],
    ['a field that nobody knows', { ...ask('A', 'get'), retries: 9 }],
  ])('is not taken with %s', async (_, request) => {
    await expect(scene.desk.submit(request as ProviderRequest)).rejects.toThrow(/provider-operation|priority/)
  })
})

describe('waits and attempts', { timeout: LONG }, () => {
  it('depend on the operation, and the provider has the last word', async () => {
    const fail = () => {
      throw new Error('busy')
    }
    scene.worker.registry.register('ITL.Test/Busy', {
      move: fail,
      list: { run: fail, retryDelayMs: 70_000 },
      once: fail,
      quota: () => {
        throw new RateLimitedError('quota', { retryAfterMs: 4_000_000 })
      },
    })
    const waits = async (name: string, resourceType = 'Busy') => {
      const { id } = await scene.desk.submit(ask(resourceType, name))
      const { delayMs, reason } = await scene.next('job.retrying', id)
      expect(reason).toContain('attempt 2 of 4')
      return delayMs
    }
    expect(await waits('move')).toBe(2_000_000)
    expect(await waits('move', 'Missing')).toBe(2_000_000)
    expect(await waits('list')).toBe(70_000)
    expect(await waits('quota')).toBeGreaterThanOrEqual(4_000_000) // what the other side asks for beats them all
    expect(await scene.died(ask('Busy', 'once'))).toMatchObject({ reason: expect.stringContaining('attempt 1 of 1') })
  })

  it('are ten, two and five seconds by default', async () => {
    const worker = new ProviderWorker()
    const { backoff } = worker.job.policy
    const wait = (name: string) => backoff?.type === 'custom' && backoff.delayMs?.(1, ask('None', name))
    expect(['create', 'get', 'delete', 'update'].map(wait)).toEqual([10_000, 2_000, 5_000, 5_000])
  })
})

describe('judgement', { timeout: LONG }, () => {
  const strange = { name: 'QuantumError', code: 'E42' }

  it('is by rule', async () => {
    const rules = [{ match: { code: 'E42' }, kind: 'permanent' as const }]
    const worker = new ProviderWorker({ rules, retryDelays: { defaultMs: 0 } })
    worker.registry.register('ITL.Test/Ruled', {
      get: () => {
        throw Object.assign(new Error('superposed'), strange)
      },
    })
    await expect(scene.redrive.perform(worker.job, ask('Ruled', 'get'))).rejects.toThrow('superposed')
    const [letter] = (await scene.desk.deadLetters({ kind: 'permanent', text: 'superposed' })).items
    expect(letter).toMatchObject({ kind: 'permanent', because: 'a rule for code "E42"', totalAttempts: 1 })
  })

  it('is by a subclass', async () => {
    class Judging extends ProviderWorker {
      protected override classify(error: unknown): ClassifierAnswer {
        if ((error as { code?: string }).code === 'E42') return { kind: 'validation', because: 'E42 is a typing error' }
      }
    }
    const worker = new Judging({ retryDelays: { defaultMs: 0 } })
    worker.registry.register('ITL.Test/Judged', {
      get: () => {
        throw Object.assign(new Error('superposed'), strange)
      },
    })
    await expect(scene.redrive.perform(worker.job, ask('Judged', 'get'))).rejects.toThrow('superposed')
    const [letter] = (await scene.desk.deadLetters({ kind: 'validation', text: 'superposed' })).items
    expect(letter).toMatchObject({ because: 'E42 is a typing error', totalAttempts: 1 })
  })
})

describe('dead letters', { timeout: LONG }, () => {
  it('are fetched, and sent back when the provider was mended', async () => {
    const leave = scene.worker.registry.register('ITL.Test/Mended', {
      get: { schema: z.object({ name: z.string() }), run: () => 1 },
    })
    const { id } = await scene.died(ask('Mended', 'get'))
    const letters = await scene.desk.deadLetters({ kind: 'validation', text: 'ITL.Test/Mended' })
    expect(letters.items.map(letter => letter.id)).toEqual([id])
    leave()
    scene.worker.registry.register('ITL.Test/Mended', { get: () => 'mended' })
    await scene.desk.resubmit(id, { by: 'ada' })
    await scene.next('job.completed', id)
    expect((await scene.desk.deadLetters({ text: 'ITL.Test/Mended' })).items).toEqual([])
    await expect(scene.desk.resubmit(id)).rejects.toThrow(/not open/)
  })

  it('are sent back by what they have in common', async () => {
    const leave = scene.worker.registry.register('ITL.Test/Many', { list: () => 1 })
    const letters = [await scene.died(ask('Many', 'get')), await scene.died(ask('Many', 'get'))]
    leave()
    scene.worker.registry.register('ITL.Test/Many', { get: () => 1 })
    const { redriven } = await scene.desk.resubmitMany({ text: 'ITL.Test/Many' })
    expect([...redriven].sort()).toEqual(letters.map(({ id }) => id).sort())
    await Promise.all(letters.map(({ id }) => scene.next('job.completed', id)))
  })

  it('are corrected by a new job with another request, and keep what was asked at first', async () => {
    scene.worker.registry.register('ITL.Test/Corrected', {
      create: { schema: z.object({ name: z.string() }), run: request => request },
    })
    const { id } = await scene.died({ ...ask('Corrected', 'create', { nam: 'a' }), priority: 7 })
    const corrected = await scene.desk.resubmitWith(id, { name: 'a' }, { by: 'ada' })
    expect((await scene.next('job.completed', corrected.id)).job.priority).toBe(7)
    const closed = await scene.redrive.operator.deadLetters.get(id)
    expect(closed).toMatchObject({ status: 'permanently_failed', payload: { request: { nam: 'a' } } })
    expect(closed.resolution).toContain(corrected.id)
    await expect(scene.desk.resubmitWith(id, {})).rejects.toThrow(/not open/)
  })
})
