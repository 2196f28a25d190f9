// The job's handler without a ledger around it: for stories about one attempt and how it ends.

import { type ThumbnailRequest, type ThumbnailResult, thumbnailPayload } from '../../../../apps/thumbnails/payload.js'
import { createThumbnailApp } from '../../../../apps/thumbnails/thumbnail-app.js'
import { classify, type HandlerContext, type JobId, type Json } from '../../../../src/index.js'

export interface Attempt {
  readonly id: string
  readonly ended: Promise<ThumbnailResult>
  /** What progress was told so far. */
  readonly progress: readonly Json[]
  abort(reason: Error): void
}

let ids = 0

export function directly(env: Readonly<Record<string, string>>) {
  const { thumbnail } = createThumbnailApp({ PATH: process.env.PATH ?? '', ...env })
  const attempt = (input_key: string, params?: ThumbnailRequest['params']): Attempt => {
    ids += 1
    const id = `00000000-0000-7000-8000-${String(ids).padStart(12, '0')}`
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
    const ended = (async () => (await thumbnail.handler?.(payload, context)) as ThumbnailResult)()
    ended.catch(() => {})
    return { id, ended, progress, abort: reason => stop.abort(reason) }
  }
  return {
    attempt,
    /** The kind and the message of its failure. */
    async failure(input_key: string, params?: ThumbnailRequest['params']): Promise<string> {
      const error = await attempt(input_key, params).ended.then(
        result => Promise.reject(new Error(`it succeeded: ${JSON.stringify(result)}`)),
        (error: Error) => error,
      )
      return `${classify(error).kind}: ${error.message}`
    },
  }
}
