// A request with an Idempotency-Key is carried out once: repeated, it gets the first answer. What failed is not kept, so it
// can be tried again.
import { createHash } from 'node:crypto'
import { RedriveError } from '../domain/errors.js'
import type { Requests } from '../operator/requests.js'

export interface Answered {
  readonly status: number
  readonly body: string | ReadableStream<Uint8Array>
  readonly headers: Readonly<Record<string, string>>
}

export interface KeyedCall {
  readonly token: string
  readonly key: string
  readonly method: string
  readonly path: string
  readonly body: string
}

/** It is done, so it is answered, even if its answer cannot be kept: an error would ask for it to be done again. */
async function keep(requests: Requests, ...kept: Parameters<Requests['keep']>): Promise<void> {
  await requests
    .keep(...kept)
    .catch(() => requests.keep(...kept))
    .catch(() => {})
}

export async function answerOnce(
  requests: Requests,
  call: KeyedCall,
  work: () => Promise<Answered>,
): Promise<Answered> {
  const { token, key, method, path, body } = call
  const asked = createHash('sha256')
    .update(JSON.stringify([method, path, body]))
    .digest('hex')
  const request = { token, key, request: asked }
  const taken = await requests.take(request)
  switch (taken.state) {
    case 'answered':
      return { ...taken.answer, headers: { 'idempotency-replayed': 'true' } }
    case 'under way':
      throw new RedriveError('REQUEST_UNDER_WAY', 'A request with this Idempotency-Key is being carried out')
    case 'other request':
      throw new RedriveError('IDEMPOTENCY_KEY_REUSED', 'This Idempotency-Key was used for another request')
    case 'mine': {
      const answer = await work().catch(async error => {
        await requests.giveBack(request).catch(() => {})
        throw error
      })
      if (typeof answer.body === 'string') await keep(requests, request, { status: answer.status, body: answer.body })
      return answer
    }
  }
}
