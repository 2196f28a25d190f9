// How an attempt can end: by time, by verdict, by its result; and what a handler is given and may tell.
import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../../src/domain/errors.js'
import { setPolicy } from '../../src/ledger/policy.js'
import { fixed, immediate } from '../../src/policy/backoff.js'
import { defineJob, type Handler, type HandlerContext, type JobOptions } from '../../src/runtime/definition.js'
import { bury, cancel, snooze } from '../../src/runtime/verdict.js'
import { gate } from '../support/gate.js'
import { openRuntime } from '../support/runtime.js'

/** One job, one worker, run to its end; what the ledger then says of it. */
async function run(handler: Handler<unknown, unknown>, options: Partial<JobOptions<unknown, unknown, unknown>> = {}) {
  const moving = await openRuntime()
  const job = defineJob({ name: 'send', queue: 'mail', ...options, handler })
  const ended = Promise.race([
    moving.next('job.completed'),
    moving.next('job.dead'),
    moving.next('job.cancelled'),
    moving.next('job.refused'),
  ])
  const id = await moving.enqueue(job)
  const worker = moving.work([job], { concurrency: 1 })
  const event = await ended
  return { ...moving, job, id, worker, event, seen: await moving.see(id) }
}

const never = () => new Promise<never>(() => {})

describe('a handler that takes too long', () => {
  it('is told by its signal, counts as timed out, and is on record', async () => {
    const told = gate<unknown>()
    const { seen } = await run(
      (_, { signal }) => {
        signal.addEventListener('abort', () => told.open(signal.reason))
        return never()
      },
      { timeoutMs: 30, retry: { attempts: 1 } },
    )
    const reason = await told.passed
    expect(isRedriveError(reason, 'TIMED_OUT') && reason.message).toBe('timed out after 30 ms')
    expect(seen).toMatchObject({ state: 'dead', attempt: 1 })
    expect(seen.attempts).toMatchObject([
      { number: 1, outcome: 'timed_out', decision: 'bury', kind: 'transient', message: 'timed out after 30 ms' },
    ])
  })

  it('frees its slot even if it never returns, and is retried', async () => {
    let runs = 0
    const { seen } = await run(
      () => {
        runs += 1
        return runs === 1 ? never() : Promise.resolve('done')
      },
      { timeoutMs: 30, retry: { attempts: 2, backoff: immediate() } },
    )
    expect(seen).toMatchObject({ state: 'completed', attempt: 2, result: 'done' })
    expect(seen.attempts).toMatchObject([{ number: 1, outcome: 'timed_out', decision: 'retry', delayMs: 0 }])
  })

  it('and brings a result after all changes nothing: the attempt is over', async () => {
    const late = gate<string>()
    const { seen, see, id } = await run(() => late.passed, { timeoutMs: 30, retry: { attempts: 1 } })
    expect(seen.state).toBe('dead')
    late.open('too late')
    await late.passed
    expect(await see(id)).toMatchObject({ state: 'dead', attempts: [{ outcome: 'timed_out' }] })
  })

  it('and answers the signal with an error of its own still timed out', async () => {
    const { seen } = await run(
      (_, { signal }) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => reject(new Error('I was told to stop')))
        }),
      { timeoutMs: 30, retry: { attempts: 1 } },
    )
    expect(seen.attempts).toMatchObject([{ outcome: 'timed_out', message: 'timed out after 30 ms' }])
  })

  it('is timed out also when what it gave back is no promise of ours', async () => {
    // biome-ignore lint/suspicious/noThenProperty: query builders are made like this
    const stranger = { then() {} } as unknown as Promise<never>
    const { seen } = await run(() => stranger, { timeoutMs: 30, retry: { attempts: 1 } })
    expect(seen.attempts).toMatchObject([{ outcome: 'timed_out' }])
  })

  it('is timed out also while its payload is being validated', async () => {
    let slow = false
    const validate = (value: unknown) => (slow ? never() : { value })
    const schema = { '~standard': { version: 1 as const, vendor: 'slow', validate } }
    const moving = await openRuntime()
    const job = defineJob({ name: 'send', schema, timeoutMs: 30, retry: { attempts: 1 }, handler: async () => null })
    const dead = moving.next('job.dead')
    const id = await moving.enqueue(job)
    slow = true
    moving.work([job])
    await dead
    expect((await moving.see(id)).attempts).toMatchObject([{ outcome: 'timed_out' }])
  })
})

describe('a verdict', () => {
  it('of snooze brings the job back later, spends no attempt, and is counted and recorded', async () => {
    const numbers: number[] = []
    const { seen } = await run(async (_, { attempt, job }) => {
      numbers.push(attempt)
      return job.snoozes < 2 ? snooze(10) : 'awake'
    })
    expect(numbers).toEqual([1, 1, 1])
    expect(seen).toMatchObject({ state: 'completed', attempt: 1, snoozes: 2, result: 'awake' })
    expect(seen.attempts).toMatchObject([
      { outcome: 'snoozed', decision: 'return', delayMs: 10, number: 1 },
      { outcome: 'snoozed', decision: 'return', delayMs: 10, number: 1 },
    ])
  })

  it('of cancel ends the job without a result and without a dead letter', async () => {
    const { seen, event } = await run(async () => cancel('the order was withdrawn'))
    expect(event).toMatchObject({ reason: 'the order was withdrawn' })
    expect(seen).toMatchObject({ state: 'cancelled', reason: 'the order was withdrawn' })
    expect(seen.attempts).toMatchObject([{ outcome: 'cancelled', decision: 'cancel' }])
  })

  it('of bury makes a dead letter at once, however many attempts are left', async () => {
    const { seen } = await run(async () => bury('there is no such user'))
    expect(seen).toMatchObject({
      state: 'dead',
      attempt: 1,
      reason: 'no retry can help: its handler said so: there is no such user',
    })
    expect(seen.attempts).toMatchObject([{ kind: 'permanent', errorType: 'Buried', message: 'there is no such user' }])
  })
})

describe('a result', () => {
  it('is kept as JSON; a handler that gives none keeps none', async () => {
    expect((await run(async () => ({ at: new Date(0), none: undefined }))).seen.result).toEqual({
      at: '1970-01-01T00:00:00.000Z',
    })
    expect((await run(() => undefined)).seen).not.toHaveProperty('result')
  })

  it('that JSON cannot hold, or that is too large, buries: to run again would only repeat the work', async () => {
    const circular: Record<string, unknown> = {}
    circular.self = circular
    let runs = 0
    const unwritable = await run(async () => {
      runs += 1
      return circular
    })
    expect(runs).toBe(1)
    expect(unwritable.seen.attempts).toMatchObject([{ errorCode: 'RESULT_NOT_SERIALISABLE', decision: 'bury' }])
    const large = await run(async () => 'x'.repeat(1_048_577))
    expect(large.seen.attempts).toMatchObject([{ errorCode: 'RESULT_TOO_LARGE', decision: 'bury' }])
  })
})

describe('a handler', () => {
  it('knows its job, its attempt, its deadline, and can tell how far it has come', async () => {
    let given: HandlerContext | undefined
    const shown = gate<unknown>()
    const moving = await openRuntime()
    const job = defineJob({
      name: 'send',
      queue: 'mail',
      service: 'smtp',
      timeoutMs: 60_000,
      handler: async (_, context) => {
        given = context
        expect(await context.progress({ done: 3, of: 7 })).toBe(true)
        shown.open((await moving.see(context.job.id)).progress)
      },
    })
    const done = moving.next('job.completed')
    const id = await moving.enqueue(job, {}, { tenant: 't', user: 'u', project: 'p', priority: 7, uniqueKey: 'k' })
    moving.work([job])
    await done
    expect(await shown.passed).toEqual({ done: 3, of: 7 })
    expect(given).toMatchObject({
      attempt: 1,
      job: { id, queue: 'mail', name: 'send', service: 'smtp', priority: 7, tenant: 't', user: 'u', project: 'p' },
    })
    expect(given?.job).toMatchObject({ uniqueKey: 'k', snoozes: 0, lost: 0, redrives: 0, createdAt: expect.any(Date) })
    expect(given?.deadline).toBeInstanceOf(Date)
    expect(given?.signal.aborted).toBe(false)
  })

  it('whose progress is too large is told so, and can go on', async () => {
    const { seen } = await run(async (_, { progress }) => {
      const refused = await Promise.resolve()
        .then(() => progress('x'.repeat(20_000)))
        .catch((error: { code: string }) => error.code)
      return refused
    })
    expect(seen.result).toBe('RESULT_TOO_LARGE')
  })

  it("follows its queue's policy of now, not the one of its code", async () => {
    const moving = await openRuntime()
    const job = defineJob({
      name: 'send',
      queue: 'mail',
      retry: { attempts: 5, backoff: fixed({ delayMs: 60_000 }) },
      handler: async () => {
        throw new Error('busy')
      },
    })
    const policy = { attempts: 2, backoff: { type: 'immediate' } }
    await setPolicy(moving.db, { scope: 'queue', target: 'mail' }, { policy, setBy: 'ada' })
    const dead = moving.next('job.dead')
    const id = await moving.enqueue(job)
    moving.work([job])
    await dead
    expect(await moving.see(id)).toMatchObject({ state: 'dead', attempt: 2, maxAttempts: 5 })
  })
})

describe('a listener', () => {
  it('that throws, or that rejects later, changes nothing: it is told as an error', async () => {
    const moving = await openRuntime()
    const where: string[] = []
    const both = gate()
    moving.on('error', event => {
      where.push(event.where)
      if (where.length === 2) both.open()
      throw new Error('even this one')
    })
    moving.on('job.started', () => {
      throw new Error('mine')
    })
    moving.on('job.started', async () => {
      throw new Error('mine, later')
    })
    const job = defineJob({ name: 'send', handler: async () => 'sent' })
    const done = moving.next('job.completed')
    const id = await moving.enqueue(job)
    moving.work([job])
    await done
    await both.passed
    expect(where).toEqual(['a listener of job.started', 'a listener of job.started'])
    expect(await moving.see(id)).toMatchObject({ state: 'completed', result: 'sent' })
  })
})
