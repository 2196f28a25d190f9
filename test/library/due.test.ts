// Jobs that are due later start on time, whoever enqueued them and whatever else is awaited.
// Seen red: with the promoter of a worker that starts sleeping until the first job that it was told of.
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/index.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { LIBRARIES, openLibrary } from '../support/library.js'
import { aJob } from '../support/story.js'

const HOUR_MS = 3_600_000

describe.each(LIBRARIES)('jobs that are due later on $name', ({ kind }) => {
  it('start on time although a worker that has just begun expects none for an hour', async () => {
    const { redrive, db, next } = await openLibrary(kind)
    const job = defineJob<string>({ name: 'later', handler: async () => null })
    const others = aJob({ queue: job.queue, name: job.name, delayMs: 2_000 })
    redrive.work([job])
    await redrive.enqueue(job, 'in an hour', { delayMs: HOUR_MS })
    await enqueue(db, [others], null)
    expect((await next('job.completed')).job.id).toBe(others.id)
  })
})
