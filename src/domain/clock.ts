// Time and chance. The only file that may touch Date, timers or Math.random, so that everything else
// can be run by a test's hand. Durable times come from the database's clock (invariant 5); this clock
// is for waiting, measuring and aborting inside one process.

/** A timer that was set; `cancel` is safe to call at any time, any number of times. */
export interface Timer {
  cancel(): void
}

export interface Clock {
  /** Wall time, milliseconds since 1970. For display and for ids; never for deciding who owns a job. */
  now(): number
  /** Milliseconds from an arbitrary start; never jumps. For measuring and for lease margins. */
  monotonic(): number
  /** Calls `fire` once after `delayMs`. With `background`, the timer does not keep the process alive. */
  timer(delayMs: number, fire: () => void, options?: { background?: boolean }): Timer
  /** Calls `fire` once, after whatever is ready to run now: what gathers in one turn can then go together. */
  soon(fire: () => void): void
}

/** A source of chance in [0, 1). */
export type Random = () => number

/** Node treats delays above this as 1 ms; longer waits are set as the longest one and looked at again. */
const LONGEST_TIMER_MS = 2 ** 31 - 1

export const systemClock: Clock = {
  now: () => Date.now(),
  monotonic: () => performance.now(),
  timer(delayMs, fire, options) {
    const handle = setTimeout(fire, Math.min(Math.max(0, delayMs), LONGEST_TIMER_MS))
    if (options?.background) handle.unref()
    return { cancel: () => clearTimeout(handle) }
  },
  soon(fire) {
    if (due.push(fire) === 1) setImmediate(runDue)
  },
}

// One immediate for all. Between two of them Node runs what was promised from within its own functions, and the frames of those would be
// captured and printed with every error of a handler that begins then.
let due: (() => void)[] = []

/** What is added meanwhile comes in another turn. One that throws does not take along those after it. */
function runDue(): void {
  const now = due
  due = []
  let ran = 0
  try {
    for (const fire of now) {
      ran += 1
      fire()
    }
  } finally {
    if (ran < now.length) {
      if (due.length === 0) setImmediate(runDue)
      due = [...now.slice(ran), ...due]
    }
  }
}

export const systemRandom: Random = () => Math.random()

/**
 * Waits `delayMs`, or until the signal aborts, whichever is first. Never rejects: a caller that must know
 * looks at the signal.
 */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal?.aborted) return resolve()
    const done = () => {
      timer.cancel()
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = clock.timer(delayMs, done)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Waits for `work`, for so long at most. Leaves no timer behind that would keep the process alive. */
export async function waitAtMost(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<void> {
  const enough = new AbortController()
  await Promise.race([work, sleep(clock, limitMs, enough.signal)]).finally(() => enough.abort())
}
