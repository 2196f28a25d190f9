// `operator.jobs.explain`: a job through its life, in words and as data, on every kind of ledger.
import { describe, expect, it } from 'vitest'
import { defineJob, fixed } from '../../src/index.js'
import { moveBreaker } from '../../src/ledger/breaker.js'
import { beforeFirst } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('explained on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind)
  })
  const explain = (id: string) => library.redrive.operator.jobs.explain(id)

  it('a job through its life', async () => {
    const { redrive, next } = library
    const { operator } = redrive
    const failing = { now: true }
    const started = gate()
    const finish = gate()
    const job = defineJob({
      name: 'send',
      queue: 'mail',
      service: 'smtp',
      retry: { attempts: 5, backoff: fixed({ delayMs: 60_000 }) },
      handler: async () => {
        if (failing.now) throw Object.assign(new Error('the server is busy'), { status: 503 })
        started.open()
        await finish.passed
        return null
      },
    })
    const { id } = await redrive.enqueue(job, {})
    expect(await explain(id)).toMatchObject({
      state: 'waiting',
      obstacle: 'no_worker',
      workers: 0,
      attempts: { made: 0, allowed: 5, left: 5 },
      next: { what: 'run' },
      text: expect.stringContaining('No worker that is alive takes jobs from queue mail'),
    })
    await operator.queues.pause('mail', { actor: 'ada' })
    expect(await explain(id)).toMatchObject({ obstacle: 'paused', queue: { paused: true, pausedBy: 'ada' } })
    await operator.queues.resume('mail')
    await operator.policies.set({ job: 'send' }, { attempts: 4 }, { actor: 'ada' })

    const retrying = next('job.retrying')
    const worker = redrive.work([job])
    await retrying
    const failed = await explain(id)
    expect(failed).toMatchObject({
      state: 'retrying',
      lastFailure: { kind: 'transient', because: 'HTTP status 503', number: 1 },
      policy: { sources: { attempts: 'job', backoff: 'definition' }, versions: { job: 1 } },
      attempts: { made: 1, allowed: 4, left: 3 },
      next: { what: 'retry', at: expect.any(Date) },
    })
    expect(failed.text).toMatch(/says the policy of job send \(version 1, set by ada .* ago\): 1 is made, 3 left\./)
    expect(failed.obstacle).toBeUndefined()

    failing.now = false
    const second = await redrive.enqueue(job, {})
    await started.passed
    expect(await explain(second.id)).toMatchObject({
      state: 'active',
      workers: 1,
      next: { what: 'finish' },
      text: expect.stringContaining('is being run by worker'),
    })
    const completed = next('job.completed')
    finish.open()
    await completed
    await worker.stop()
    expect(await explain(second.id)).toMatchObject({ state: 'completed', next: { what: 'nothing' } })

    await operator.jobs.cancel(id, { reason: 'not needed' })
    expect(await explain(id)).toMatchObject({
      state: 'cancelled',
      text: expect.stringMatching(/was cancelled .* ago: not needed\./),
    })
  })

  it('a job whose service is held, and one that died', async () => {
    const { redrive, next, db } = library
    const job = defineJob({
      name: 'upload',
      queue: 'files',
      service: 's3',
      handler: async () => {
        throw Object.assign(new Error('no such bucket'), { status: 404 })
      },
    })
    const died = next('job.dead')
    const worker = redrive.work([job])
    const { id } = await redrive.enqueue(job, {})
    await died
    await worker.stop()
    expect(await explain(id)).toMatchObject({
      state: 'dead',
      next: { what: 'decide' },
      lastFailure: { kind: 'permanent' },
      text: expect.stringContaining('Next: a person decides; it does not run again by itself.'),
    })
    const move = { service: 's3', fromVersion: 0, openings: 1, shadow: false, changedBy: 'w1' } as const
    await moveBreaker(db, { ...move, state: 'open', openMs: 60_000, reason: '5 failures in a row' }, null)
    const waiting = await redrive.enqueue(job, {})
    expect(await explain(waiting.id)).toMatchObject({
      obstacle: 'breaker',
      service: { name: 's3', state: 'open', reason: '5 failures in a row', openUntil: expect.any(Date) },
      text: expect.stringContaining('Its service s3 is down, and its breaker has been open for'),
    })
  })

  it('a job that is over its rate', async () => {
    const { redrive, next } = library
    const rated = defineJob({
      name: 'rated',
      queue: 'rated',
      rateLimit: { limit: 1, intervalMs: 3_600_000, key: 'tenant' },
      handler: async () => null,
    })
    const held = next('job.held', event => event.job.queue === 'rated')
    const worker = redrive.work([rated])
    await redrive.enqueue(rated, 1, { tenant: 'acme' })
    const { id } = await redrive.enqueue(rated, 2, { tenant: 'acme' })
    await held
    await worker.stop()
    expect(await explain(id)).toMatchObject({
      state: 'held',
      obstacle: 'rate_limit',
      rateLimit: { key: 'acme' },
      attempts: { made: 0 },
      next: { what: 'look_again' },
      text: expect.stringMatching(
        /Its rate limit .* for acme is used up, and it keeps its place until its turn comes\./,
      ),
    })
  })

  it('an id that nobody knows, one that was removed, and what is no id', async () => {
    const { redrive, next } = library
    const nobody = '01941f29-7c00-7000-8000-000000000000'
    expect(await explain(nobody)).toMatchObject({
      state: 'unknown',
      sentences: [`There is no job ${nobody} in this ledger.`, /made/, /retention/].map(part =>
        typeof part === 'string' ? part : expect.stringMatching(part),
      ),
    })
    const job = defineJob({
      name: 'gone',
      queue: 'gone',
      retry: { attempts: 1 },
      handler: async () => {
        throw new Error('no')
      },
    })
    const died = next('job.dead')
    const worker = redrive.work([job])
    const { id } = await redrive.enqueue(job, {})
    await died
    await worker.stop()
    await redrive.operator.deadLetters.remove(id, { actor: 'ada' })
    expect((await explain(id)).text).toMatch(/The audit has an action on it: remove by ada, .* ago\./)
    await expect(explain('7')).rejects.toMatchObject({ code: 'SETTING_INVALID' })
  })
})
