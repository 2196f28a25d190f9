// Payloads are checked twice: when they are enqueued, and again before the handler, since what is stored may be older
// than the code. One that does not fit dies alone.
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineJob, type JobId } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

/** A Standard Schema by hand: any validator that speaks it will do. */
const positive = {
  '~standard': {
    version: 1 as const,
    vendor: 'by hand',
    validate: (value: unknown) =>
      typeof value === 'number' && value > 0
        ? { value: { amount: value } }
        : { issues: [{ message: 'must be positive', path: ['amount', { key: 0 }] }, { message: 'and a number' }] },
  },
}

describe.each(LIBRARIES)('payloads on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind)
  })

  it('are validated by any Standard Schema, and the handler gets what the schema made of them', async () => {
    const { redrive } = library
    const shout = z.object({ to: z.string().transform(text => text.toUpperCase()), copies: z.number().default(1) })
    const mail = defineJob({ name: 'mail', schema: shout, handler: async payload => payload })
    expect(await redrive.perform(mail, { to: 'ada' })).toEqual({ to: 'ADA', copies: 1 })
    const pay = defineJob({ name: 'pay', schema: positive, handler: async payload => payload })
    expect(await redrive.perform(pay, 5)).toEqual({ amount: 5 })
  })

  it('that do not fit are refused with every issue, and nothing is enqueued', async () => {
    const { redrive } = library
    const mail = defineJob({ name: 'mail', schema: z.object({ to: z.object({ address: z.email() }) }) })
    await expect(redrive.enqueue(mail, { to: { address: 'x' } })).rejects.toMatchObject({
      code: 'PAYLOAD_INVALID',
      message: expect.stringMatching(/^The payload of job mail does not fit its schema: to\.address: Invalid email/),
    })
    const pay = defineJob({ name: 'pay', schema: positive })
    await expect(redrive.enqueue(pay, -1)).rejects.toMatchObject({
      message: 'The payload of job pay does not fit its schema: amount.0: must be positive; and a number',
      details: {
        issues: [
          { in: 'payload', field: 'amount.0', message: 'must be positive' },
          { in: 'payload', field: '', message: 'and a number' },
        ],
      },
    })
    const all = await redrive.operator.queues.statistics()
    expect(all.find(({ queue }) => queue === 'default')?.waiting ?? 0).toBe(0)
  })

  it('are validated as they will be read: a Date is text by then', async () => {
    const { redrive } = library
    const due = defineJob<{ at: Date | string }>({ name: 'due', schema: z.object({ at: z.iso.datetime() }) as never })
    await redrive.enqueue(due, { at: new Date() }, { delayMs: 60_000 })
    await expect(redrive.enqueue(due, { at: 'soon' })).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
  })

  it('pitfall 20: a stored payload that no longer fits dies alone, of kind validation; the line goes on', async () => {
    const { redrive, next } = library
    const old = defineJob<unknown>({ name: 'versioned', queue: 'versions' })
    const now = defineJob({
      name: 'versioned',
      queue: 'versions',
      schema: z.object({ version: z.literal(2) }),
      handler: async ({ version }) => version,
    })
    const ids: JobId[] = []
    for (const version of [2, 1, 2]) ids.push((await redrive.enqueue(old, { version })).id)
    const died = next('job.dead', ({ job }) => job.id === ids[1])
    const last = next('job.completed', ({ job }) => job.id === ids[2])
    const worker = redrive.work([now], { concurrency: 1 })
    await Promise.all([died, last])
    await worker.stop()
    const jobs = await Promise.all(ids.map(id => redrive.operator.jobs.get(id)))
    expect(jobs.map(job => job?.state)).toEqual(['completed', 'dead', 'completed'])
    const letter = await redrive.operator.deadLetters.get(ids[1] as JobId)
    expect(letter).toMatchObject({ kind: 'validation', errorCode: 'PAYLOAD_INVALID', totalAttempts: 1 })
    expect(letter.message).toMatch(/^The payload of job versioned does not fit its schema: version: /)
    expect(letter.payload).toEqual({ version: 1 })
  })

  it('a validator that throws fails the attempt like any other error, and may heal', async () => {
    const { redrive, next } = library
    let validations = 0
    const schema = {
      '~standard': {
        version: 1 as const,
        vendor: 'moody',
        validate: (value: unknown) => {
          validations += 1
          if (validations === 2) throw new Error('the schema registry is busy')
          return { value }
        },
      },
    }
    const retry = { backoff: { type: 'immediate' } } as const
    const job = defineJob({ name: 'moody', queue: 'moody', schema, retry, handler: async () => 'fine' })
    const done = next('job.completed', event => event.job.name === 'moody')
    const { id } = await redrive.enqueue(job, 1)
    const worker = redrive.work([job])
    await done
    await worker.stop()
    expect(await redrive.operator.jobs.get(id)).toMatchObject({
      attempt: 2,
      attempts: [{ kind: 'transient', message: 'the schema registry is busy' }],
    })
  })
})
