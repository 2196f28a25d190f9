// The common shape of background roles: do a step, wait, do it again; back off while it fails; stop cleanly. A step
// says how long to wait until the next one; `nudge` cuts the wait short.
import type { Clock, Random, Timer } from '../domain/clock.js'

export interface Role {
  /** Its first step comes now, or in so long. */
  start(inMs?: number): void
  /** Resolves when the running step, if any, has ended and no other will start. */
  stop(): Promise<void>
}

export interface Loop extends Role {
  /** Runs the next step now instead of later. */
  nudge(): void
  /** Runs the next step in so long, unless it would run earlier anyway. */
  nudgeIn(delayMs: number): void
}

export interface LoopOptions {
  readonly clock: Clock
  readonly random: Random
  /** One step; returns the milliseconds to wait before the next. */
  readonly step: () => Promise<number>
  readonly onError: (error: unknown) => void
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000

export function loop({ clock, random, step, onError }: LoopOptions): Loop {
  let running: Promise<void> | undefined
  let timer: Timer | undefined
  let stopped = true
  let nudged = false
  let soon = false
  let failures = 0
  let nextAt = 0

  const runStep = async () => {
    nudged = false
    let waitMs: number
    try {
      waitMs = await step()
      failures = 0
    } catch (error) {
      onError(error)
      // Full jitter: a fleet that lost its database together must not come back together (pitfall 6).
      waitMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures) * (0.5 + random() / 2)
      failures += 1
    }
    running = undefined
    if (stopped) return
    if (failures === 0 && (nudged || waitMs <= 0)) runSoon()
    else runIn(waitMs)
  }

  const runIn = (waitMs: number) => {
    nextAt = clock.monotonic() + waitMs
    timer = clock.timer(waitMs, run, { background: true })
  }

  // Not at once: what else happens in this turn may want the same step.
  const runSoon = () => {
    if (soon) return
    soon = true
    clock.soon(() => {
      soon = false
      run()
    })
  }

  const run = () => {
    timer?.cancel()
    timer = undefined
    if (!stopped && !running) running = runStep()
  }

  return {
    start(inMs = 0) {
      if (!stopped) return
      stopped = false
      if (inMs > 0) runIn(inMs)
      else run()
    },
    nudge() {
      nudged = true
      if (!stopped && !running && failures === 0) runSoon()
    },
    nudgeIn(delayMs) {
      if (stopped || !timer || failures > 0 || clock.monotonic() + delayMs >= nextAt) return
      timer.cancel()
      runIn(delayMs)
    },
    async stop() {
      stopped = true
      timer?.cancel()
      await running
    },
  }
}
