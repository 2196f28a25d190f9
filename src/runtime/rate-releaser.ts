// Lets jobs go that are held for a rate limit, a moment before their turn, so that a worker has them in time. Every worker
// with such jobs does it; whoever looks at a key first has it to itself.
import { releaseRate } from '../ledger/rate-limit.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'

/** So far ahead slots are given to jobs that were claimed. */
export const HORIZON_MS = 250
/** So far ahead of their slots held jobs are let go: enough for a claim, less than the horizon. */
export const WINDOW_MS = 200
/** What was let go needs so long to be taken, at most. */
export const PAUSE_MS = 75
const LONGEST_WAIT_MS = 1_000
const MOST_KEYS = 50
const MOST_JOBS = 1_000

export function rateReleaser(runtime: Runtime, onError: (error: unknown) => void): Loop {
  const { clock, random, db, transport } = runtime
  const step = async () => {
    const { queues, nextInMs } = await releaseRate(db, {
      channel: transport.channel,
      windowMs: WINDOW_MS,
      pauseMs: PAUSE_MS,
      mostKeys: MOST_KEYS,
      mostJobs: MOST_JOBS,
    })
    for (const queue of queues) transport.wake(queue)
    return Math.max(SHORTEST_WAIT_MS, Math.min(nextInMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS))
  }
  return loop({ clock, random, step, onError })
}

/** While another process has a key that is due, there is no hurry. */
const SHORTEST_WAIT_MS = 10
