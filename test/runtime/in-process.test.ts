// A job or function run here and now: retried, judged and recorded like a queued one, and awaited by its caller.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  bury,
  cancel,
  defineJob,
  openRedrive,
  PermanentError,
  type Redrive,
  retryable,
  snooze,
} from '../../src/index.js'
import { immediate } from '../../src/policy/backoff.js'
import { embeddedCopy } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { silent } from '../support/runtime.js'

let redrive: Redrive
beforeAll(async () => {
  const database = await embeddedCopy()
  redrive = await openRedrive({ database, env: {}, logger: silent, retry: { backoff: immediate() } })
})
afterAll(() => redrive.close())

const deadLetterOf = async (name: string) => {
  const { items } = await redrive.operator.deadLetters.list({ name })
  expect(items).toHaveLength(1)
  return redrive.operator.deadLetters.get(items[0]?.id ?? '')
}
const noDeadLetterOf = async (name: string) =>
  expect((await redrive.operator.deadLetters.list({ name })).items).toEqual([])

/** Fails so many times, then returns. */
const flaky = (failures: number, error: () => Error = () => new Error('busy')) => {
  let runs = 0
  return async () => {
    runs += 1
    if (runs <= failures) throw error()
    return `run ${runs}`
  }
}

describe('perform', () => {
  it('retries, and gives the result', async () => {
    const job = defineJob({ name: 'healing', handler: flaky(2) })
    expect(await redrive.perform(job, {})).toBe('run 3')
    await noDeadLetterOf('healing')
  })

  it('throws what its last attempt threw, and leaves a dead letter with every attempt', async () => {
    const last = new Error('busy as ever')
    let runs = 0
    const handler = async () => {
      runs += 1
      throw runs === 3 ? last : new Error('busy')
    }
    const job = defineJob<{ to: string }>({ name: 'failing', queue: 'mail', service: 'smtp', handler })
    await expect(redrive.perform(job, { to: 'ada' }, { tenant: 't' })).rejects.toBe(last)
    const letter = await deadLetterOf('failing')
    expect(letter).toMatchObject({
      queue: 'mail',
      payload: { to: 'ada' },
      service: 'smtp',
      tenant: 't',
      totalAttempts: 3,
      message: 'busy as ever',
      reason: 'transient (the text says "busy"): attempt 3 of 3',
    })
    expect(letter.attempts.map(({ number, decision, message }) => [number, decision, message])).toEqual([
      [1, 'retry', 'busy'],
      [2, 'retry', 'busy'],
      [3, 'bury', 'busy as ever'],
    ])
  })

  it('does not retry what cannot heal', async () => {
    let runs = 0
    const job = defineJob({
      name: 'hopeless',
      handler: async () => {
        runs += 1
        throw new PermanentError('no such file')
      },
    })
    await expect(redrive.perform(job, {})).rejects.toThrow('no such file')
    expect(runs).toBe(1)
  })

  it('gives up where the next attempt would come after the total limit', async () => {
    const job = defineJob({
      name: 'patient',
      retry: { backoff: { type: 'fixed', delayMs: 60_000 }, totalMs: 1_000 },
      handler: flaky(9),
    })
    await expect(redrive.perform(job, {})).rejects.toThrow('busy')
    expect((await deadLetterOf('patient')).reason).toMatch(/past the total limit of 1 s$/)
  })

  it('waits out a snooze, and spends no attempt on it', async () => {
    const numbers: number[] = []
    const job = defineJob({
      name: 'sleepy',
      handler: async (_, { attempt, job }) => {
        numbers.push(attempt)
        return job.snoozes === 0 ? snooze(1) : 'awake'
      },
    })
    expect(await redrive.perform(job, {})).toBe('awake')
    expect(numbers).toEqual([1, 1])
  })

  it('of a handler that cancels, or whose caller gives up, is CANCELLED', async () => {
    const cancelling = defineJob({ name: 'cancelling', handler: async () => cancel('not needed') })
    await expect(redrive.perform(cancelling, {})).rejects.toMatchObject({
      code: 'CANCELLED',
      message: 'The call of cancelling was cancelled: not needed',
    })
    const started = gate()
    const waiting = defineJob({
      name: 'waiting',
      handler: () => {
        started.open()
        return new Promise<never>(() => {})
      },
    })
    const caller = new AbortController()
    const call = redrive.perform(waiting, {}, { signal: caller.signal })
    await started.passed
    caller.abort()
    await expect(call).rejects.toMatchObject({ code: 'CANCELLED' })
    await noDeadLetterOf('waiting')
  })

  it('whose caller has given up already starts nothing', async () => {
    let runs = 0
    const job = defineJob({
      name: 'unwanted',
      handler: async () => {
        runs += 1
      },
    })
    await expect(redrive.perform(job, {}, { signal: AbortSignal.abort() })).rejects.toMatchObject({ code: 'CANCELLED' })
    expect(runs).toBe(0)
  })

  it('of a handler that buries throws its reason, not the error of an attempt before', async () => {
    let runs = 0
    const handler = async () => {
      runs += 1
      if (runs === 1) throw new Error('busy')
      return bury('there is no such user')
    }
    await expect(redrive.perform(defineJob({ name: 'burying', handler }), {})).rejects.toThrow(
      /^there is no such user$/,
    )
    expect((await deadLetterOf('burying')).message).toBe('there is no such user')
  })

  it('throws an error also when it dies with dead letters off', async () => {
    const off = { deadLetter: false }
    const burying = defineJob({ name: 'quiet', retry: off, handler: async () => bury('no such user') })
    await expect(redrive.perform(burying, {})).rejects.toThrow('no such user')
    const failing = defineJob({ name: 'quiet too', retry: off, handler: flaky(9) })
    await expect(redrive.perform(failing, {})).rejects.toThrow('busy')
    await noDeadLetterOf('quiet')
    await noDeadLetterOf('quiet too')
  })
})

describe('retryable', () => {
  it('is the function itself, retried: same arguments, any result', async () => {
    const fail = flaky(1)
    const when = new Date()
    const rates = retryable(async (day: Date, currency: string) => ({ day, currency, run: await fail() }), {
      name: 'rates',
    })
    expect(await rates(when, 'EUR')).toEqual({ day: when, currency: 'EUR', run: 'run 2' })
    await noDeadLetterOf('rates')
  })

  it('leaves a dead letter whose payload is its arguments; as a job it can be redriven', async () => {
    let broken = true
    const rates = retryable(
      async function fetchRates(day: string) {
        if (broken) throw new Error('bank unavailable')
        return `rates of ${day}`
      },
      { service: 'bank' },
    )
    await expect(rates('monday')).rejects.toThrow('bank unavailable')
    const letter = await deadLetterOf('fetchRates')
    expect(letter).toMatchObject({ payload: ['monday'], service: 'bank', totalAttempts: 3 })
    broken = false
    const done = new Promise<void>(resolve => {
      redrive.on('job.completed', ({ job }) => job.id === letter.id && resolve())
    })
    await redrive.operator.deadLetters.retry(letter.id)
    const worker = redrive.work([rates.job])
    await done
    await worker.stop()
    expect(await redrive.operator.jobs.get(letter.id)).toMatchObject({ state: 'completed', result: 'rates of monday' })
  })

  it('calls with arguments that cannot be stored, and says so in the dead letter', async () => {
    const odd = retryable(
      async (_count: bigint) => {
        throw new PermanentError('odd')
      },
      { name: 'odd' },
    )
    await expect(odd(1n)).rejects.toThrow('odd')
    expect((await deadLetterOf('odd')).payload).toEqual({ notStored: expect.stringContaining('BigInt') })
  })

  it('decorates a method, and keeps its this', async () => {
    class Bank {
      runs = 0

      @retryable({ retry: { attempts: 5, backoff: immediate() } })
      async balance(account: string): Promise<string> {
        this.runs += 1
        if (this.runs < 4) throw new Error('busy')
        return `${account}: ${this.runs}`
      }
    }
    const bank = new Bank()
    expect(await bank.balance('ada')).toBe('ada: 4')
  })

  it('with two Redrives open must be told whose ledger it means', async () => {
    const other = await openRedrive({ database: await embeddedCopy(), env: {}, logger: silent })
    const call = async () => 'fine'
    await expect(async () => retryable(call)()).rejects.toMatchObject({ code: 'AMBIGUOUS_INSTANCE' })
    expect(await retryable(call, { redrive })()).toBe('fine')
    await other.close()
    expect(await retryable(call)()).toBe('fine')
  })
})
