// Jobs that one process puts in line one after the other, behind others that wait there. An enqueue asks whether somebody waits, because
// workers need to be woken only where nobody did (pitfall 10). In a streak that is asked now and then, not for each job: it is a
// fifth of what a single enqueue costs.
// INVARIANT: a streak ends with a wake-up. Who waited when we last asked may be gone by then, and all workers asleep. While it goes on, they
// look by themselves: whoever took the others has just had work, and looks again soon (runtime/looks.ts).
import type { Clock, Timer } from '../../domain/clock.js'
import { PerLane } from '../per-lane.js'
import type { Lane } from '../transport.js'

/** So long nothing is asked, at first and at most: twice as long each time that others still wait. */
const SHORTEST_MS = 10
const LONGEST_MS = 100
/** It is over when nobody has asked again for so long. */
const OVER_MS = 25

interface Streak {
  readonly queue: string
  lastsMs: number
  /** Until then it is not asked again. */
  until: number
  /** Set while there is something in line that nobody was told of. */
  wakeUp: Timer | undefined
}

export class Streaks {
  readonly #clock: Clock
  readonly #wake: (queue: string) => Promise<void>
  readonly #streaks = new PerLane<Streak>(({ queue }) => ({ queue, lastsMs: 0, until: 0, wakeUp: undefined }))
  readonly #waking = new Set<Promise<void>>()

  constructor(clock: Clock, wake: (queue: string) => Promise<void>) {
    this.#clock = clock
    this.#wake = wake
  }

  /** Tells whether others waited in this lane when a job was put there. */
  asked(lane: Lane, othersWait: boolean): void {
    const streak = this.#streaks.of(lane)
    streak.lastsMs = othersWait ? Math.min(LONGEST_MS, Math.max(SHORTEST_MS, streak.lastsMs * 2)) : 0
    streak.until = this.#clock.monotonic() + streak.lastsMs
  }

  /** True: it need not be asked now. */
  lasts(lane: Lane): boolean {
    return this.#clock.monotonic() < this.#streaks.of(lane).until
  }

  /**
   * A job was put in line without asking. To be told afterwards, so that whoever is woken finds it; and if it failed as well, because it may be
   * there all the same.
   */
  wasPut(lane: Lane): void {
    const streak = this.#streaks.of(lane)
    if (!streak.wakeUp) this.#tellAtItsEnd(streak)
  }

  /** Tells now what would be told later. */
  async end(): Promise<void> {
    for (const streak of this.#streaks.all()) if (streak.wakeUp) this.#tell(streak)
    await Promise.all(this.#waking)
  }

  #tellAtItsEnd(streak: Streak): void {
    const leftMs = () => streak.until + OVER_MS - this.#clock.monotonic()
    const look = () => (leftMs() > 0 ? this.#tellAtItsEnd(streak) : this.#tell(streak))
    streak.wakeUp = this.#clock.timer(leftMs(), look, { background: true })
  }

  #tell(streak: Streak): void {
    streak.wakeUp?.cancel()
    streak.wakeUp = undefined
    const waking = this.#wake(streak.queue).finally(() => this.#waking.delete(waking))
    this.#waking.add(waking)
  }
}
