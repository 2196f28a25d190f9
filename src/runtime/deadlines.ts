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

  constructor(clock: Clock) {
    this.#clock = clock
  }

  start(attempt: Limited): void {
    if (this.#started.push(attempt) === 1) this.#clock.soon(() => this.#arm())
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
