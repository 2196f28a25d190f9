// How long we wait for an answer before we give it up: the last resort, for a server that has fallen silent.
import type { Clock, Timer } from '../../domain/clock.js'

export interface Waiting {
  readonly since: number
  readonly giveUp: () => void
}

/**
 * One timer for all who wait. pg's own limit (`query_timeout`) sets one for each query, and what belongs to a query then outlives it: a tenth of what
 * single enqueues allocate stayed until the next full garbage collection (docs/decisions/0033).
 */
export class Patience {
  readonly #clock: Clock
  readonly #limitMs: number
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Waiting>()
  #timer: Timer | undefined

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock
    this.#limitMs = limitMs
  }

  /** Calls `giveUp` when the limit has passed, unless `end` is called before. */
  begin(giveUp: () => void): Waiting {
    const waiting = { since: this.#clock.monotonic(), giveUp }
    this.#waiting.add(waiting)
    this.#timer ??= this.#clock.timer(this.#limitMs, this.#look, { background: true })
    return waiting
  }

  end(waiting: Waiting): void {
    this.#waiting.delete(waiting)
  }

  readonly #look = (): void => {
    this.#timer = undefined
    const now = this.#clock.monotonic()
    for (const waiting of this.#waiting) {
      const leftMs = waiting.since + this.#limitMs - now
      if (leftMs > 0) {
        this.#timer = this.#clock.timer(leftMs, this.#look, { background: true })
        return
      }
      this.#waiting.delete(waiting)
      waiting.giveUp()
    }
  }
}
