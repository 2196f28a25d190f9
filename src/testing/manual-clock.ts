// A clock that stands still until it is told to go on. `advance` fires the timers that come due, in order, and lets
// what they start run before the next one.
import { type Clock, systemClock, type Timer } from '../domain/clock.js'

export interface ManualClock extends Clock {
  /** Moves time on and runs what comes due. */
  advance(ms: number): Promise<void>
  /** How many timers are set. */
  readonly pending: number
}

interface Waiting {
  readonly at: number
  readonly order: number
  readonly fire: () => void
}

/** Turns of the event loop given to what a timer started: database calls in memory need a few. */
const TURNS = 5

export function manualClock(startAt = Date.UTC(2030, 0, 1)): ManualClock {
  let now = startAt
  let order = 0
  const timers = new Set<Waiting>()

  const settle = async () => {
    for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>(resolve => systemClock.soon(resolve))
  }
  const next = (until: number): Waiting | undefined =>
    [...timers].filter(timer => timer.at <= until).sort((a, b) => a.at - b.at || a.order - b.order)[0]

  return {
    now: () => now,
    monotonic: () => now - startAt,
    timer(delayMs, fire): Timer {
      order += 1
      const timer = { at: now + Math.max(0, delayMs), order, fire }
      timers.add(timer)
      return { cancel: () => void timers.delete(timer) }
    },
    soon: fire => systemClock.soon(fire),
    get pending() {
      return timers.size
    },
    async advance(ms) {
      const until = now + ms
      await settle()
      for (let due = next(until); due; due = next(until)) {
        now = Math.max(now, due.at)
        timers.delete(due)
        due.fire()
        await settle()
      }
      now = until
      await settle()
    },
  }
}
