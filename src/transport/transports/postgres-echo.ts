// Whether a process hears what it says to itself: behind a pooler nobody may, and a connection may be dead without knowing it.
import { type Clock, sleep } from '../../domain/clock.js'

/** Whoever does not hear itself for so long does not hear. */
const LIMIT_MS = 1_000

export class Echo {
  readonly #clock: Clock
  readonly #say: () => Promise<void>
  readonly #listening = new Set<AbortController>()

  constructor(clock: Clock, say: () => Promise<void>) {
    this.#clock = clock
    this.#say = say
  }

  async comes(): Promise<boolean> {
    const heard = new AbortController()
    this.#listening.add(heard)
    try {
      await this.#say()
      await sleep(this.#clock, LIMIT_MS, heard.signal)
      return heard.signal.aborted
    } finally {
      this.#listening.delete(heard)
    }
  }

  heard(): void {
    for (const listening of this.#listening) listening.abort()
  }

  /** For when it can be heard again: what was said before may have been said in vain. */
  repeat(): void {
    if (this.#listening.size > 0) this.#say().catch(() => {})
  }
}
