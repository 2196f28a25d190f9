// Putting jobs in line: what may be asked for, what is checked, what is durable when.
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { defineJob, type ForeignClient } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

const TOO_LARGE = 'x'.repeat(1_048_576)

describe.each(LIBRARIES)('enqueue on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind)
  })
  const see = async (id: string) => {
    const job = await library.redrive.operator.jobs.get(id)
    if (!job) throw new Error(`no job ${id}`)
    return job
  }
  const waitingIn = async (queue: string) => {
    const all = await library.redrive.operator.queues.statistics()
    return all.find(statistics => statistics.queue === queue)?.waiting ?? 0
  }

  it('keeps everything that was said about a job', async () => {
    const { redrive } = library
    const job = defineJob<{ key: string }>({ name: 'resize', queue: 'images', service: 's3', retry: { attempts: 5 } })
    const heard = library.next('job.enqueued')
    const { id, deduplicated } = await redrive.enqueue(
      job,
      { key: 'a.png' },
      { priority: 8, tenant: 'acme', user: 'ada', project: 'site', uniqueKey: 'a.png' },
    )
    expect(deduplicated).toBe(false)
    expect(await heard).toMatchObject({ job: { id, queue: 'images', name: 'resize', tenant: 'acme' } })
    expect(await see(id)).toMatchObject({
      state: 'waiting',
      queue: 'images',
      name: 'resize',
      payload: { key: 'a.png' },
      priority: 8,
      tenant: 'acme',
      user: 'ada',
      project: 'site',
      service: 's3',
      uniqueKey: 'a.png',
      attempt: 0,
      maxAttempts: 5,
      attempts: [],
    })
  })

  it('takes the default queue and priority where nothing is said, and the priority of the job where it says one', async () => {
    const { redrive } = library
    const { id } = await redrive.enqueue(defineJob({ name: 'plain' }), null)
    expect(await see(id)).toMatchObject({ queue: 'default', priority: 5, payload: null })
    const urgent = await redrive.enqueue(defineJob({ name: 'urgent', priority: 9 }), null)
    expect((await see(urgent.id)).priority).toBe(9)
  })

  it('schedules by delay or by time, and a time beats a delay', async () => {
    const { redrive } = library
    const job = defineJob({ name: 'later', queue: 'later' })
    const inAnHour = await see((await redrive.enqueue(job, 1, { delayMs: 3_600_000 })).id)
    expect(inAnHour.state).toBe('scheduled')
    expect((inAnHour.runAt as Date).getTime() - inAnHour.createdAt.getTime()).toBeCloseTo(3_600_000, -1)
    const runAt = new Date(Date.now() + 7_200_000)
    const atTime = await see((await redrive.enqueue(job, 1, { runAt, delayMs: 1 })).id)
    expect(atTime).toMatchObject({ state: 'scheduled', runAt })
    const past = await see((await redrive.enqueue(job, 1, { runAt: new Date(-1) })).id)
    expect(past.state).toBe('waiting')
  })

  it('admits one live job for each queue and unique key', async () => {
    const { redrive } = library
    const job = defineJob({ name: 'once', queue: 'once' })
    const first = await redrive.enqueue(job, 1, { uniqueKey: 'k' })
    expect(await redrive.enqueue(job, 2, { uniqueKey: 'k' })).toEqual({ id: first.id, deduplicated: true })
    const elsewhere = await redrive.enqueue(defineJob({ name: 'once', queue: 'twice' }), 3, { uniqueKey: 'k' })
    expect(elsewhere.deduplicated).toBe(false)
    await redrive.operator.jobs.cancel(first.id)
    expect((await redrive.enqueue(job, 4, { uniqueKey: 'k' })).deduplicated).toBe(false)
  })

  it('enqueues many in their order, keyed and not, and says which were there already', async () => {
    const { redrive } = library
    const job = defineJob<number>({ name: 'many', queue: 'many' })
    const live = await redrive.enqueue(job, 0, { uniqueKey: 'k' })
    const enqueued = await redrive.enqueueMany(job, [
      { payload: 1 },
      { payload: 2, options: { uniqueKey: 'k' } },
      { payload: 3, options: { uniqueKey: 'new', priority: 1 } },
      { payload: 4, options: { uniqueKey: 'new' } },
    ])
    expect(enqueued.map(({ deduplicated }) => deduplicated)).toEqual([false, true, false, true])
    expect(enqueued[1]?.id).toBe(live.id)
    expect(enqueued[3]?.id).toBe(enqueued[2]?.id)
    expect((await see(enqueued[0]?.id ?? '')).payload).toBe(1)
    expect(await redrive.enqueueMany(job, [])).toEqual([])
  })

  it('refuses a batch in which a payload stands by itself, and stores nothing of it', async () => {
    const { redrive } = library
    const job = defineJob<unknown>({ name: 'bare', queue: 'bare items' })
    const items = [{ payload: { n: 1 } }, { n: 2 }] as unknown as { payload: unknown }[]
    await expect(redrive.enqueueMany(job, items)).rejects.toMatchObject({
      code: 'SETTING_INVALID',
      message: 'Item 1 of enqueueMany is "without a payload"; it must be { payload, options? }',
    })
    const found = await redrive.operator.queues.statistics()
    expect(found.find(({ queue }) => queue === job.queue)?.waiting ?? 0).toBe(0)
  })

  it('enqueues all of many or none: one payload that does not fit leaves nothing behind', async () => {
    const { redrive } = library
    const job = defineJob({ name: 'all', queue: 'all or none', schema: z.object({ to: z.email() }) })
    const items = [{ payload: { to: 'ada@example.org' } }, { payload: { to: 'nobody' } }]
    await expect(redrive.enqueueMany(job, items)).rejects.toMatchObject({ code: 'PAYLOAD_INVALID' })
    expect(await waitingIn('all or none')).toBe(0)
  })

  it('takes many and large payloads as they are when it is called, whatever becomes of them meanwhile', async () => {
    const large = defineJob<{ nth: number; text: string }>({ name: 'large', queue: 'large' })
    const items = Array.from({ length: 40 }, (_, nth) => ({ payload: { nth, text: 'é'.repeat(30_000) } }))
    const enqueuing = library.redrive.enqueueMany(large, items)
    for (const { payload } of items) payload.text = 'changed'
    const jobs = await enqueuing
    const seen = await Promise.all(jobs.map(({ id }) => see(id)))
    expect(seen.map(({ payload }) => payload)).toEqual(items.map((_, nth) => ({ nth, text: 'é'.repeat(30_000) })))
  })

  it('takes a payload as hostile as it may be, and gives it back as it was', async () => {
    const payload = {
      nul: 'a\0b',
      half: '\ud800',
      quote: `'; DROP TABLE redrive.job; --`,
      template: '$1 %s {{x}}',
      html: '<script>',
      deep: [[[[{ a: null }]]]],
      number: 1e300,
    }
    const { id } = await library.redrive.enqueue(defineJob({ name: 'hostile', queue: "o'hara; --" }), payload)
    expect(await see(id)).toMatchObject({ payload, queue: "o'hara; --" })
  })

  // Embedded, a Redrive keeps its only connection to itself; open.test.ts gives it a PGlite of the caller's.
  it.runIf(kind === 'server')(
    "exists if, and only if, the caller's own transaction commits (server only)",
    async () => {
      const { redrive, url } = library
      const client = new pg.Client({ connectionString: url as string })
      await client.connect()
      onTestFinished(() => client.end())
      const job = defineJob({ name: 'welcome', queue: 'tx' })
      await client.query('BEGIN')
      const gone = await redrive.enqueue(job, 1, { tx: client as unknown as ForeignClient })
      expect(await redrive.operator.jobs.get(gone.id)).toBeUndefined()
      await client.query('ROLLBACK')
      expect(await redrive.operator.jobs.get(gone.id)).toBeUndefined()

      await client.query('BEGIN')
      const [kept] = await redrive.enqueueMany(job, [{ payload: 2 }], { tx: client as unknown as ForeignClient })
      await client.query('COMMIT')
      expect(await see(kept?.id ?? '')).toMatchObject({ state: 'waiting', payload: 2 })
      expect(await waitingIn('tx')).toBe(1)
    },
  )

  it('says in one error what is wrong, and enqueues nothing', async () => {
    const { redrive } = library
    const job = defineJob<unknown>({ name: 'bad', queue: 'bad' })
    const circular: Record<string, unknown> = {}
    circular.self = circular
    const cases: [unknown, object, string, RegExp][] = [
      [1n, {}, 'PAYLOAD_NOT_SERIALISABLE', /payload of job bad cannot be written as JSON: .*BigInt/],
      [circular, {}, 'PAYLOAD_NOT_SERIALISABLE', /payload of job bad cannot be written as JSON: .*circular/],
      [() => {}, {}, 'PAYLOAD_NOT_SERIALISABLE', /cannot be written as JSON: it is a function/],
      [Symbol('s'), {}, 'PAYLOAD_NOT_SERIALISABLE', /cannot be written as JSON: it is a symbol/],
      [TOO_LARGE, {}, 'PAYLOAD_TOO_LARGE', /payload of job bad has 1048578 bytes; at most 1048576 are allowed/],
      [1, { priority: 11 }, 'SETTING_INVALID', /priority is 11; it must be a whole number from 0 to 10/],
      [1, { priority: -1 }, 'SETTING_INVALID', /priority is -1/],
      [1, { priority: 2.5 }, 'SETTING_INVALID', /priority is 2.5/],
      [1, { delayMs: -1 }, 'SETTING_INVALID', /delayMs is -1; it must be milliseconds from 0 to/],
      [1, { delayMs: Number.NaN }, 'SETTING_INVALID', /delayMs is NaN/],
      [1, { delayMs: '100' }, 'SETTING_INVALID', /delayMs is "100"/],
      [1, { delayMs: 5n }, 'SETTING_INVALID', /delayMs is 5/],
      [1, { delayMs: 4e11 }, 'SETTING_INVALID', /delayMs is 400000000000/],
      [1, { runAt: new Date('soon') }, 'SETTING_INVALID', /runAt is Invalid Date; it must be a valid Date/],
      [1, { runAt: '2030-01-01' }, 'SETTING_INVALID', /runAt is "2030-01-01"/],
      [1, { runAt: new Date(8.64e15) }, 'SETTING_INVALID', /runAt is .*; it must be .* at most ten years ahead/],
      [1, { uniqueKey: '' }, 'SETTING_INVALID', /uniqueKey is ""; it must be text of 1 to 512 characters/],
      [1, { uniqueKey: 'x'.repeat(513) }, 'SETTING_INVALID', /uniqueKey is "xxx/],
      [1, { uniqueKey: 'a\0b' }, 'SETTING_INVALID', /uniqueKey is/],
      [1, { tenant: 7 }, 'SETTING_INVALID', /tenant is 7/],
      [1, { user: '\ud800' }, 'SETTING_INVALID', /user is/],
      [1, { project: '' }, 'SETTING_INVALID', /project is ""/],
    ]
    for (const [payload, options, code, message] of cases) {
      await expect(redrive.enqueue(job, payload, options), String(message)).rejects.toMatchObject({
        code,
        message: expect.stringMatching(message),
      })
    }
    const tooMany = Array.from({ length: 10_001 }, () => ({ payload: 1 }))
    await expect(redrive.enqueueMany(job, tooMany)).rejects.toMatchObject({
      code: 'SETTING_INVALID',
      message: 'The number of jobs in one enqueueMany is 10001; it must be at most 10000',
    })
    expect(await waitingIn('bad')).toBe(0)
  })
})
