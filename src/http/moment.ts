// Answers that all who ask within a moment share: many people looking at once cost what one costs. What takes long to find
// out is kept for longer, so that looking never takes more than a small part of the database's time; and nobody waits for
// it while the last answer is not old: they get that one, and the next is found out meanwhile.
import type { Clock } from '../domain/clock.js'

const MOMENT_MS = 1_000
/** What took so long is kept for so many times as long. */
const TIMES = 20
/** What took at least so long… */
const LONG_MS = 25
/** …is still given at this age, while it is found out again. */
const OLDEST_MS = 10_000
/** More answers than this are not kept; the oldest goes. */
const MOST_KEPT = 500

interface Kept {
  readonly at: number
  readonly value: Promise<unknown>
  tookMs: number
  isRenewed: boolean
}

export class Moment {
  readonly #clock: Clock
  readonly #kept = new Map<string, Kept>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** `key`: which question, with all that its answer depends on. */
  cached<T>(key: string, make: () => Promise<T>): Promise<T> {
    const kept = this.#kept.get(key)
    const ageMs = kept ? this.#clock.monotonic() - kept.at : 0
    if (kept && ageMs < lifeMs(kept)) return kept.value as Promise<T>
    if (kept && kept.tookMs >= LONG_MS && ageMs < OLDEST_MS) {
      if (!kept.isRenewed) this.#renew(key, kept, make)
      return kept.value as Promise<T>
    }
    const fresh = this.#ask(make)
    this.#keep(key, fresh)
    fresh.value.catch(() => {
      if (this.#kept.get(key) === fresh) this.#kept.delete(key)
    })
    return fresh.value as Promise<T>
  }

  /** Something was changed: whoever changed it wants to see it. */
  forget(): void {
    this.#kept.clear()
  }

  /** What was forgotten meanwhile is not brought back. */
  #renew(key: string, kept: Kept, make: () => Promise<unknown>): void {
    kept.isRenewed = true
    const fresh = this.#ask(make)
    fresh.value.then(
      () => {
        if (this.#kept.get(key) === kept) this.#keep(key, fresh)
      },
      () => {
        kept.isRenewed = false
      },
    )
  }

  #ask(make: () => Promise<unknown>): Kept {
    const at = this.#clock.monotonic()
    // A question that throws at once is an answer that fails: who asks two at the same time must not lose hold of the first.
    const value = new Promise(resolve => resolve(make()))
    const asked: Kept = { at, value, tookMs: 0, isRenewed: false }
    asked.value.then(
      () => {
        asked.tookMs = this.#clock.monotonic() - at
      },
      () => {},
    )
    return asked
  }

  #keep(key: string, fresh: Kept): void {
    this.#kept.delete(key)
    this.#kept.set(key, fresh)
    if (this.#kept.size > MOST_KEPT) this.#kept.delete(this.#kept.keys().next().value as string)
  }
}

const lifeMs = ({ tookMs }: Kept): number => Math.max(MOMENT_MS, TIMES * tookMs)
