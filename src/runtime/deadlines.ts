// Time limits of attempts. A timer costs as much as a small job, and most small jobs have ended before theirs could ever
// fire: one is set only for what still runs when its turn of the event loop is over.
import type { Clock, Timer } from '../domain/clock.js'

export interface Limited {
  readonly ended: boolean
  readonly limitMs: number
  /** To be cancelled when it ends. */
  timer: Timer | undefined
  overdue(): void
}

export class Deadlines {
  readonly #clock: Clock
  #started: Limited[] = []
  #startedAt = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Returns when that was, once for all that begin in one turn. */
  start(attempt: Limited): number {
    if (this.#started.push(attempt) === 1) {
      this.#startedAt = this.#clock.now()
      this.#clock.soon(() => this.#arm())
    }
    return this.#startedAt
  }

  #arm(): void {
    const started = this.#started
    this.#started = []
    for (const attempt of started) {
      if (attempt.ended) continue
      attempt.timer = this.#clock.timer(attempt.limitMs, () => attempt.overdue(), { background: true })
    }
  }
}
