// Answers that all who ask within a moment share: many people looking at once cost what one costs.
import type { Clock } from '../domain/clock.js'

const MOMENT_MS = 1_000

export class Moment {
  readonly #clock: Clock
  readonly #kept = new Map<string, { readonly at: number; readonly value: Promise<unknown> }>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `key`: one of a few that are written in the code. */
  cached<T>(key: string, make: () => Promise<T>): Promise<T> {
    const now = this.#clock.monotonic()
    const kept = this.#kept.get(key)
    if (kept && now < kept.at + MOMENT_MS) return kept.value as Promise<T>
    const value = make()
    this.#kept.set(key, { at: now, value })
    value.catch(() => {
      if (this.#kept.get(key)?.value === value) this.#kept.delete(key)
    })
    return value
  }

  /** Something was changed: whoever changed it wants to see it. */
  forget(): void {
    this.#kept.clear()
  }
}
