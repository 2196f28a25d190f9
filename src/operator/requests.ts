// Requests that must be carried out once however often they are sent: the first is done, its answer kept for a day.
import {
  forgetKeys,
  giveBackKey,
  type KeyedAnswer,
  type KeyedRequest,
  keepAnswer,
  takeKey,
} from '../ledger/idempotency-key.js'
import type { Desk } from './context.js'

const KEPT_MS = 24 * 3_600_000
/** One that is under way for longer than this was left by a process that died. */
const HELD_MS = 120_000
const MOST_KEPT = 100_000
/** Old ones are forgotten with every so-manieth request, a batch at a time. */
const SWEPT_EVERY = 64
const BATCH = 1_000

export function requests({ db }: Desk) {
  let seen = 0
  return {
    async take(request: KeyedRequest) {
      if (seen++ % SWEPT_EVERY === 0) await forgetKeys(db, MOST_KEPT, BATCH)
      return takeKey(db, request, HELD_MS)
    },

    keep: (request: KeyedRequest, answer: KeyedAnswer): Promise<void> => keepAnswer(db, request, answer, KEPT_MS),

    /** It could not be carried out: whoever asks again may try. */
    giveBack: (request: KeyedRequest): Promise<void> => giveBackKey(db, request),
  }
}

export type Requests = ReturnType<typeof requests>
