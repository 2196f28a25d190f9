// A queued job, `perform` and `retryable` are one path: the same error is judged, decided, retried and buried equally.
import { describe, expect, it } from 'vitest'
import {
  AuthenticationError,
  type DeadLetter,
  defineJob,
  type Handler,
  RateLimitedError,
  retryable,
  ValidationError,
} from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

const withStatus = (status: number) => Object.assign(new Error(`HTTP ${status}`), { status })
const retry = { attempts: 2, jitter: false, backoff: { type: 'delays', delaysMs: [1] }, minMs: 0 } as const

const ERRORS: readonly [string, () => unknown][] = [
  ['a plain error', () => new Error('the server is busy')],
  ['a status that may heal', () => withStatus(503)],
  ['a status that may not', () => withStatus(404)],
  ['a reset connection', () => Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })],
  ['our own classes', () => new ValidationError('no address', { code: 'E_ADDRESS' })],
  ['a wait asked for', () => new RateLimitedError('slow down', { retryAfterMs: 2, service: 'bank' })],
  ['a cause', () => new Error('could not pay', { cause: new AuthenticationError('key expired') })],
  ['a text', () => 'just a text'],
  ['a long message', () => new Error('x'.repeat(10_000))],
]

describe.each(LIBRARIES)('one path on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    // Jobs die here on purpose: no breaker is to hold them for their service.
    library = await openLibrary(kind, { services: { psp: { breaker: { enabled: false } } } })
  })

  async function letterOf(queue: string) {
    const { items } = await library.redrive.operator.deadLetters.list({ queue })
    expect(items).toHaveLength(1)
    return library.redrive.operator.deadLetters.get((items[0] as DeadLetter).id)
  }

  /** What must be equal: everything but who, when and where. */
  async function judged(queue: string) {
    const {
      kind,
      because,
      reason,
      outcome,
      errorType,
      errorCode,
      message,
      causes,
      httpStatus,
      service,
      totalAttempts,
      attempts,
    } = await letterOf(queue)
    return {
      letter: {
        kind,
        because,
        reason,
        outcome,
        errorType,
        errorCode,
        message,
        causes,
        httpStatus,
        service,
        totalAttempts,
      },
      attempts: attempts.map(
        ({ startedAt: _s, finishedAt: _f, nextRunAt: _n, worker: _w, stack: _t, fingerprint: _p, ...attempt }) =>
          attempt,
      ),
    }
  }

  it.each(ERRORS)('%s', async (what, thrown) => {
    const { redrive, next } = library
    const handler: Handler<unknown, unknown> = async () => {
      throw thrown()
    }
    const options = { name: 'pay', service: 'psp', retry } as const
    const queued = defineJob({ ...options, queue: `queued: ${what}`, handler })
    const died = next('job.dead', ({ job }) => job.queue === queued.queue)
    await redrive.enqueue(queued, 1)
    const worker = redrive.work([queued])
    await died
    await worker.stop()

    const performed = defineJob({ ...options, queue: `performed: ${what}`, handler })
    await expect(redrive.perform(performed, 1)).rejects.toEqual(thrown())
    const call = retryable(
      async () => {
        throw thrown()
      },
      { ...options, queue: `called: ${what}`, redrive },
    )
    await expect(call()).rejects.toEqual(thrown())

    const expected = await judged(queued.queue)
    expect(await judged(performed.queue)).toEqual(expected)
    expect(await judged(`called: ${what}`)).toEqual(expected)
    expect(expected.attempts.length).toBeGreaterThan(0)
  })

  it('a timeout', async () => {
    const { redrive, next } = library
    const never = () => new Promise<never>(() => {})
    const options = { name: 'pay', timeoutMs: 20, retry: { ...retry, attempts: 1 } } as const
    const queued = defineJob({ ...options, queue: 'queued timeout', handler: never })
    const died = next('job.dead', ({ job }) => job.queue === queued.queue)
    await redrive.enqueue(queued, 1)
    const worker = redrive.work([queued])
    await died
    await worker.stop()
    const performed = defineJob({ ...options, queue: 'performed timeout', handler: never })
    await expect(redrive.perform(performed, 1)).rejects.toMatchObject({ code: 'TIMED_OUT' })
    await expect(retryable(never, { ...options, queue: 'called timeout', redrive })()).rejects.toMatchObject({
      code: 'TIMED_OUT',
    })
    const expected = await judged(queued.queue)
    expect(expected.letter.outcome).toBe('timed_out')
    expect(await judged('performed timeout')).toEqual(expected)
    expect(await judged('called timeout')).toEqual(expected)
  })
})
