// What a person may do: look at dead letters, send them back, close, note and remove them; pause, set and clean queues;
// see and cancel jobs. Every change leaves an audit row.
import { describe, expect, it } from 'vitest'
import { defineJob, type JobId, PermanentError } from '../../src/index.js'
import { beforeFirst } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { LIBRARIES, type Library, openLibrary } from '../support/library.js'

describe.each(LIBRARIES)('the operator on $name', ({ kind }) => {
  let library: Library
  beforeFirst(async () => {
    library = await openLibrary(kind, {
      leaseMs: 1_000,
      retry: { backoff: { type: 'immediate' } },
      // Jobs die here on purpose: no breaker is to hold them for their service.
      services: { smtp: { breaker: { enabled: false } } },
    })
  })
  const letters = () => library.redrive.operator.deadLetters
  const nobody = '00000000-0000-7000-8000-000000000000'

  /** Dead letters in a queue of their own: each error is one job that died of it. */
  async function dead(queue: string, ...errors: readonly Error[]): Promise<JobId[]> {
    const { redrive, next } = library
    const job = defineJob<number>({
      name: `job of ${queue}`,
      queue,
      service: 'smtp',
      handler: async nth => {
        throw errors[nth]
      },
    })
    const ids: JobId[] = []
    const worker = redrive.work([job], { concurrency: 1 })
    for (const nth of errors.keys()) {
      const died = next('job.dead', event => event.job.queue === queue)
      ids.push((await redrive.enqueue(job, nth)).id)
      await died
    }
    await worker.stop()
    return ids
  }
  const oneDead = async (queue: string) => (await dead(queue, new PermanentError('no such user')))[0] as JobId

  it('lists dead letters, newest first, by each filter, page by page', async () => {
    const [busy, gone, refused] = await dead(
      'list',
      new Error('the server is BUSY'),
      new PermanentError('gone'),
      Object.assign(new Error('no'), { status: 403 }),
    )
    const ids = async (filter: Parameters<ReturnType<typeof letters>['list']>[0]) =>
      (await letters().list({ queue: 'list', ...filter })).items.map(({ id }) => id)
    expect(await ids({})).toEqual([refused, gone, busy])
    expect(await ids({ kind: 'transient' })).toEqual([busy])
    expect(await ids({ text: 'busy' })).toEqual([busy])
    expect(await ids({ name: 'job of list', service: 'smtp', status: 'pending' })).toHaveLength(3)
    expect(await ids({ service: 's3' })).toEqual([])
    expect(await ids({ since: new Date(Date.now() + 60_000) })).toEqual([])
    expect(await ids({ until: new Date(Date.now() + 60_000) })).toHaveLength(3)
    const { fingerprint, diedAt } = await letters().get(gone as string)
    expect(await ids({ fingerprint })).toEqual([gone])
    expect(await ids({ since: diedAt })).toEqual([refused, gone])

    const first = await letters().list({ queue: 'list' }, { limit: 2 })
    expect(first.total).toEqual({ value: 3, exact: true })
    const rest = await letters().list({ queue: 'list' }, { limit: 2, cursor: first.nextCursor ?? '' })
    expect([...first.items, ...rest.items].map(({ id }) => id)).toEqual([refused, gone, busy])
    expect(rest.nextCursor).toBeUndefined()
    const byOffset = await letters().list({ queue: 'list' }, { limit: 1, offset: 1 })
    expect(byOffset.items.map(({ id }) => id)).toEqual([gone])
  })

  it('shows one with every attempt it had', async () => {
    const [id] = await dead('get', new Error('the server is busy'))
    const letter = await letters().get(id as string)
    expect(letter).toMatchObject({ kind: 'transient', totalAttempts: 3, status: 'pending', recoveryAttempts: 0 })
    expect(letter.stack).toContain('the server is busy')
    expect(letter.attempts.map(({ number, decision, reason }) => [number, decision, reason])).toEqual([
      [1, 'retry', expect.stringContaining('attempt 2 of 3 in 0 ms')],
      [2, 'retry', expect.stringContaining('attempt 3 of 3 in 0 ms')],
      [3, 'bury', letter.reason],
    ])
    await expect(letters().get(nobody)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(letters().get('7')).rejects.toMatchObject({ code: 'SETTING_INVALID' })
  })

  it("keeps of a stack what is the handler's, and not how we came to call it", async () => {
    const { redrive, next } = library
    const charge = () => {
      throw new PermanentError('declined:\n    at Attempt.redriveCallsHandler (in the message)')
    }
    const handler = async () => charge()
    const job = defineJob({ name: 'charge', queue: 'stacks', handler })
    const died = next('job.dead', ({ job }) => job.queue === 'stacks')
    const { id } = await redrive.enqueue(job, 1)
    const worker = redrive.work([job])
    await died
    await worker.stop()
    const { stack } = await letters().get(id)
    expect(stack?.split('\n')).toEqual([
      'PermanentError: declined:',
      '    at Attempt.redriveCallsHandler (in the message)',
      expect.stringMatching(/^ {4}at charge \(.*operator\.test\.ts:\d+:\d+\)$/),
      expect.stringMatching(/^ {4}at Object\.handler \(.*operator\.test\.ts:\d+:\d+\)$/),
    ])
  })

  it('sends one back once: a second time it is NOT_PENDING; when its job has ended it is recovered', async () => {
    const id = await oneDead('retry')
    const { redrive, next, audit } = library
    expect(await letters().retry(id, { actor: 'ada', reason: 'fixed' })).toMatchObject({
      status: 'redriving',
      recoveryAttempts: 1,
    })
    await expect(letters().retry(id)).rejects.toMatchObject({ code: 'NOT_PENDING', details: { status: 'redriving' } })
    await expect(letters().remove(id)).rejects.toMatchObject({ code: 'NOT_PENDING' })
    await expect(letters().retry(nobody)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    const done = next('job.completed', ({ job }) => job.id === id)
    const worker = redrive.work([defineJob({ name: 'job of retry', queue: 'retry', handler: async () => 'mended' })])
    expect(await done).toMatchObject({ redriven: true, attempt: 1 })
    await worker.stop()
    expect(await letters().get(id)).toMatchObject({ status: 'recovered', resolution: 'its job completed' })
    expect(await redrive.operator.jobs.get(id)).toMatchObject({ state: 'completed', redrives: 1, result: 'mended' })
    expect(await audit('dead_letter', id)).toMatchObject([
      { actor: 'ada', action: 'retry', before: { status: 'pending' }, after: { status: 'redriving' }, reason: 'fixed' },
    ])
  })

  it('leaves one open whose unique key another live job has', async () => {
    const { redrive, next } = library
    const job = defineJob({
      name: 'keyed',
      queue: 'keyed',
      handler: async () => Promise.reject(new PermanentError('x')),
    })
    const died = next('job.dead', event => event.job.queue === 'keyed')
    const { id } = await redrive.enqueue(job, 1, { uniqueKey: 'k' })
    const worker = redrive.work([job])
    await died
    await worker.stop()
    await redrive.enqueue(job, 2, { uniqueKey: 'k' })
    await expect(letters().retry(id)).rejects.toMatchObject({ code: 'UNIQUE_KEY_TAKEN', details: { uniqueKey: 'k' } })
    expect(await letters().retryMany({ queue: 'keyed' })).toEqual({ redriven: [], conflicts: [id] })
    expect((await letters().get(id)).status).toBe('pending')
  })

  it('closes one for good, with a reason; it can still be sent back later', async () => {
    const id = await oneDead('close')
    await expect(letters().markFailed(id, { reason: ' ' })).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    expect(await letters().markFailed(id, { reason: 'customer left', actor: 'ada' })).toMatchObject({
      status: 'permanently_failed',
      resolution: 'customer left',
      resolvedAt: expect.any(Date),
    })
    await expect(letters().markFailed(id, { reason: 'again' })).rejects.toMatchObject({ code: 'NOT_PENDING' })
    await expect(letters().markFailed(nobody, { reason: 'x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect((await letters().retry(id)).status).toBe('redriving')
    expect(await library.audit('dead_letter', id)).toMatchObject([
      { action: 'retry', before: { status: 'permanently_failed' } },
      { action: 'mark failed', actor: 'ada', before: { status: 'pending' }, reason: 'customer left' },
    ])
  })

  it('notes what people say, and takes it away again', async () => {
    const id = await oneDead('notes')
    const noted = { notes: 'ask the bank', assignedTo: 'ada', priority: 9 }
    expect(await letters().annotate(id, noted, { actor: 'bob' })).toMatchObject(noted)
    const bare = await letters().annotate(id, { notes: null, assignedTo: null })
    expect(bare).not.toHaveProperty('notes')
    expect(bare).not.toHaveProperty('assignedTo')
    expect(bare.priority).toBe(9)
    await expect(letters().annotate(id, { priority: 11 })).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    await expect(letters().annotate(nobody, { notes: 'x' })).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await library.audit('dead_letter', id)).toMatchObject([
      { action: 'annotate', actor: 'library', before: noted, after: { notes: null, assignedTo: null } },
      { action: 'annotate', actor: 'bob', before: { notes: null, assignedTo: null, priority: 5 }, after: noted },
    ])
  })

  it('removes one; what it was stays in the audit', async () => {
    const id = await oneDead('remove')
    await letters().remove(id, { actor: 'ada', reason: 'personal data' })
    await expect(letters().get(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(letters().remove(id)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await library.redrive.operator.jobs.get(id)).toBeUndefined()
    expect(await library.audit('dead_letter', id)).toMatchObject([
      { action: 'remove', actor: 'ada', before: { queue: 'remove', message: 'no such user' }, reason: 'personal data' },
    ])
  })

  it('sends many back by a filter that says something, after showing how many', async () => {
    const ids = await dead('many', new PermanentError('a'), new PermanentError('b'), new Error('busy'))
    for (const nothing of [{}, { queue: undefined }, { all: false }] as unknown as { all: true }[]) {
      await expect(letters().retryMany(nothing)).rejects.toMatchObject({ code: 'FILTER_REQUIRED' })
      await expect(async () => letters().preview(nothing)).rejects.toMatchObject({ code: 'FILTER_REQUIRED' })
    }
    const misspelt = { queeu: 'many' } as unknown as { queue: string }
    await expect(letters().retryMany(misspelt)).rejects.toThrow(/^A filter is "queeu"; it must be one of queue, name/)
    await expect(letters().retryMany({ all: true, queue: 'many' } as never)).rejects.toMatchObject({
      code: 'FILTER_REQUIRED',
    })
    expect(await letters().preview({ queue: 'many', kind: 'permanent' })).toBe(2)
    const { redriven } = await letters().retryMany({ queue: 'many', kind: 'permanent' }, { actor: 'ada' })
    expect([...redriven].sort()).toEqual([ids[0], ids[1]].sort())
    expect(await letters().preview({ queue: 'many' })).toBe(1)
    expect((await letters().statistics()).filter(({ queue }) => queue === 'many')).toEqual([
      { queue: 'many', status: 'pending', kind: 'transient', count: 1 },
      { queue: 'many', status: 'redriving', kind: 'permanent', count: 2 },
    ])
    expect(await library.audit('dead_letter', JSON.stringify({ queue: 'many', kind: 'permanent' }))).toMatchObject([
      { action: 'retry many', actor: 'ada', after: { redriven: 2, conflicts: 0 } },
    ])
  })

  it('pauses and resumes a queue; what came meanwhile runs then', async () => {
    const { redrive, next, audit } = library
    const { queues } = redrive.operator
    const job = defineJob({ name: 'hourly', queue: 'pausing', handler: async () => null })
    await queues.pause('pausing', { actor: 'ada', reason: 'the bank is down' })
    expect(await queues.get('pausing')).toMatchObject({ paused: true })
    const worker = redrive.work([job])
    const { id } = await redrive.enqueue(job, 1)
    await worker.ready
    expect((await redrive.operator.jobs.get(id))?.state).toBe('waiting')
    const done = next('job.completed', event => event.job.id === id)
    await queues.resume('pausing')
    await done
    await worker.stop()
    expect((await queues.statistics()).find(({ queue }) => queue === 'pausing')).toMatchObject({
      paused: false,
      completed: 1,
      waiting: 0,
    })
    expect(await audit('queue', 'pausing')).toMatchObject([
      { action: 'resume', actor: 'library', after: { paused: false } },
      { action: 'pause', actor: 'ada', after: { paused: true }, reason: 'the bank is down' },
    ])
    await expect(queues.resume('no such queue')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(queues.get('no such queue')).rejects.toMatchObject({ code: 'NOT_FOUND' })
    await expect(queues.pause('')).rejects.toMatchObject({ code: 'SETTING_INVALID' })
    await expect(queues.pause('a\0b')).rejects.toMatchObject({ code: 'SETTING_INVALID' })
  })

  it('cleans what has ended, open dead letters only when that is said', async () => {
    const id = await oneDead('clean')
    const { redrive, audit } = library
    const { queues } = redrive.operator
    await redrive.perform(defineJob({ name: 'job of clean', queue: 'clean', handler: async () => null }), 1)
    expect(await queues.clean('clean', { status: 'completed', graceMs: 60_000 })).toEqual({ removed: 0 })
    expect(await queues.clean('clean', { status: 'completed', graceMs: 0 })).toEqual({ removed: 1 })
    expect(await queues.clean('clean', { status: 'dead', graceMs: 0 })).toEqual({ removed: 0 })
    expect((await letters().get(id)).status).toBe('pending')
    expect(await queues.clean('clean', { status: 'dead', graceMs: 0, includeOpen: true })).toEqual({ removed: 1 })
    await expect(queues.clean('clean', { status: 'dead', graceMs: -1 })).rejects.toMatchObject({
      code: 'SETTING_INVALID',
    })
    await expect(queues.clean('clean', { status: 'waiting' as 'dead', graceMs: 0 })).rejects.toMatchObject({
      code: 'SETTING_INVALID',
    })
    expect((await audit('queue', 'clean'))[0]).toMatchObject({ action: 'clean', after: { status: 'dead', removed: 1 } })
  })

  it('cancels a job that waits at once, and asks one that runs', async () => {
    const { redrive, next, audit } = library
    const started = gate()
    const told = gate<unknown>()
    const job = defineJob({
      name: 'long',
      queue: 'cancelling',
      handler: (_, { signal }) => {
        signal.addEventListener('abort', () => told.open(signal.reason))
        started.open()
        return new Promise<never>(() => {})
      },
    })
    const worker = redrive.work([job], { concurrency: 1 })
    const running = await redrive.enqueue(job, 1)
    await started.passed
    const waiting = await redrive.enqueue(job, 2, { delayMs: 60_000 })
    expect(await redrive.operator.jobs.cancel(waiting.id, { actor: 'ada', reason: 'not needed' })).toBe('cancelled')
    expect(await redrive.operator.jobs.get(waiting.id)).toMatchObject({ state: 'cancelled', reason: 'not needed' })
    const cancelled = next('job.cancelled', event => event.job.id === running.id)
    expect(await redrive.operator.jobs.cancel(running.id)).toBe('requested')
    await cancelled
    expect(await told.passed).toMatchObject({ code: 'CANCEL_REQUESTED', message: 'cancelled by library' })
    await worker.stop()
    expect(await redrive.operator.jobs.get(running.id)).toMatchObject({ state: 'cancelled' })
    await expect(redrive.operator.jobs.cancel(running.id)).rejects.toMatchObject({ code: 'NOT_CANCELLABLE' })
    await expect(redrive.operator.jobs.cancel(nobody)).rejects.toMatchObject({ code: 'NOT_FOUND' })
    expect(await audit('job', waiting.id)).toMatchObject([
      { action: 'cancel', actor: 'ada', before: { state: 'scheduled' }, after: { result: 'cancelled' } },
    ])
  })
})
