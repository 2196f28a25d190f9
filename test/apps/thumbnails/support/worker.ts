// The thumbnail worker as a user runs it, in this process, on an embedded ledger, with a way to ask for one thumbnail
// and to wait for its end.
import { afterAll } from 'vitest'
import type { ThumbnailRequest, ThumbnailResult } from '../../../../apps/thumbnails/payload.js'
import { createThumbnailApp } from '../../../../apps/thumbnails/thumbnail-app.js'
import type { DeadLetter, JobId, Redrive, RedriveOptions } from '../../../../src/index.js'
import { type Library, openLibrary } from '../../../support/library.js'

export interface TestWorker {
  readonly redrive: Redrive
  readonly db: Library['db']
  readonly next: Library['next']
  readonly app: ReturnType<typeof createThumbnailApp>
  enqueue(input_key: string, params?: ThumbnailRequest['params']): Promise<JobId>
  /** The result of a job that has to succeed. */
  result(id: JobId): Promise<ThumbnailResult>
  /** The dead letter of a job that has to die. */
  death(id: JobId): Promise<DeadLetter>
  made(input_key: string, params?: ThumbnailRequest['params']): Promise<ThumbnailResult>
  died(input_key: string, params?: ThumbnailRequest['params']): Promise<DeadLetter>
  close(): Promise<void>
}

const open = new Set<TestWorker>()
afterAll(async () => {
  for (const worker of open) await worker.close()
})

export async function openWorker(
  env: Readonly<Record<string, string>>,
  options: RedriveOptions = {},
): Promise<TestWorker> {
  const { redrive, db, next } = await openLibrary('memory', options)
  const app = createThumbnailApp({ PATH: process.env.PATH ?? '', ...env })
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const putAway = await app.setup({ redrive, env, log })
  const ends = new Map<JobId, 'completed' | 'dead'>()
  const waiting = new Map<JobId, () => void>()
  const ended = (how: 'completed' | 'dead') => (event: { readonly job: { readonly id: JobId } }) => {
    ends.set(event.job.id, how)
    waiting.get(event.job.id)?.()
  }
  redrive.on('job.completed', ended('completed'))
  redrive.on('job.dead', ended('dead'))
  const end = async (id: JobId) => {
    if (!ends.has(id)) await new Promise<void>(resolve => waiting.set(id, resolve))
    return ends.get(id)
  }
  const work = redrive.work([app.thumbnail])
  await work.ready

  const worker: TestWorker = {
    redrive,
    db,
    next,
    app,
    enqueue: async (input_key, params) =>
      (await redrive.enqueue(app.thumbnail, { input_key, ...(params && { params }) })).id,
    async result(id) {
      if ((await end(id)) === 'completed')
        return (await redrive.operator.jobs.get(id))?.result as unknown as ThumbnailResult
      const { message, reason, causes } = await redrive.operator.deadLetters.get(id)
      throw new Error(`it died: ${message} ${JSON.stringify(causes)} (${reason})`)
    },
    async death(id) {
      if ((await end(id)) === 'dead') return redrive.operator.deadLetters.get(id)
      throw new Error(`it completed: ${JSON.stringify((await redrive.operator.jobs.get(id))?.result)}`)
    },
    made: async (input_key, params) => worker.result(await worker.enqueue(input_key, params)),
    died: async (input_key, params) => worker.death(await worker.enqueue(input_key, params)),
    async close() {
      if (!open.delete(worker)) return
      await redrive.close({ graceMs: 0 })
      await putAway()
    },
  }
  open.add(worker)
  return worker
}
