// A gentle, bounded stream of demo jobs: a few a second, and none while many are live or many dead letters are open.
import { sleep, systemClock } from '../domain/clock.js'
import type { Redrive } from '../index.js'
import { DYING, STREAM } from './jobs.js'

const EVERY_MS = 350
const MOST_LIVE = 1_000
const MOST_OPEN_DEAD_LETTERS = 500
/** After the ledger refused a job. */
const PAUSE_MS = 2_000

export interface Load {
  readonly live: number
  readonly openDeadLetters: number
}

/** Produces until the signal aborts. `load`: what the ledger held when it was last looked at. Never rejects. */
export async function produce(
  redrive: Redrive,
  load: () => Load,
  signal: AbortSignal,
  onError: (error: unknown) => void,
): Promise<void> {
  for (let number = 1; !signal.aborted; number += 1) {
    const job = STREAM[(number - 1) % STREAM.length]
    const { live, openDeadLetters } = load()
    const enough = live >= MOST_LIVE || (job && DYING.has(job) && openDeadLetters >= MOST_OPEN_DEAD_LETTERS)
    try {
      if (job && !enough) await redrive.enqueue(job, { number })
      await sleep(systemClock, EVERY_MS, signal)
    } catch (error) {
      if (!signal.aborted) onError(error)
      await sleep(systemClock, PAUSE_MS, signal)
    }
  }
}
