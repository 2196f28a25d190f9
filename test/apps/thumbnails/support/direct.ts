// The job's handler without a ledger around it: for stories about one attempt and how it ends.

import { type ThumbnailRequest, type ThumbnailResult, thumbnailPayload } from '../../../../apps/thumbnails/payload.js'
import { createThumbnailApp } from '../../../../apps/thumbnails/thumbnail-app.js'
import { type ThumbnailParts, thumbnailJob } from '../../../../apps/thumbnails/thumbnail-job.js'
import { classify, type HandlerContext, type JobId, type Json } from '../../../../src/index.js'

export interface Attempt {
  readonly id: string
  readonly ended: Promise<ThumbnailResult>
  /** What progress was told so far. */
  readonly progress: readonly Json[]
  abort(reason: Error): void
}

type Thumbnail = ReturnType<typeof createThumbnailApp>['thumbnail']
type Params = ThumbnailRequest['params']

let ids = 0
const newId = () => {
  ids += 1
  return `00000000-0000-7000-8000-${String(ids).padStart(12, '0')}`
}

function perform({ handler }: Thumbnail, input_key: string, params?: Params, id = newId()): Attempt {
  const stop = new AbortController()
  const progress: Json[] = []
  const context = {
    job: { id: id as JobId },
    attempt: 1,
    signal: stop.signal,
    deadline: new Date(),
    log: { debug() {}, info() {}, warn() {}, error() {} },
    progress: async (told: Json) => {
      progress.push(told)
      return true
    },
  } as unknown as HandlerContext
  const payload = thumbnailPayload.parse({ input_key, params })
  const ended = (async () => (await handler?.(payload, context)) as ThumbnailResult)()
  ended.catch(() => {})
  return { id, ended, progress, abort: reason => stop.abort(reason) }
}

/** With parts of the test's own. */
export const runJob = (parts: Pick<ThumbnailParts, 'storage' | 'ranged' | 'ffmpeg'>, input_key: string): Attempt =>
  perform(
    thumbnailJob(async () => ({ decoders: 1, maxPixels: 1e8, memoryBytes: 2 ** 31, ...parts }), 1),
    input_key,
  )

/** With the parts that the environment names. */
export function directly(env: Readonly<Record<string, string>>) {
  const { thumbnail } = createThumbnailApp({ PATH: process.env.PATH ?? '', ...env })
  return {
    attempt: (input_key: string, params?: Params, id?: string) => perform(thumbnail, input_key, params, id),
    /** The kind and the message of its failure. */
    async failure(input_key: string, params?: Params): Promise<string> {
      const error = await perform(thumbnail, input_key, params).ended.then(
        result => Promise.reject(new Error(`it succeeded: ${JSON.stringify(result)}`)),
        (error: Error) => error,
      )
      return `${classify(error).kind}: ${error.message}`
    },
  }
}
