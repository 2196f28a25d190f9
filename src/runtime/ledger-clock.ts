// The ledger's time by our own stopwatch. An answer tells what time it was when it was made, and takes a different time
// each to get here: the one that took least is nearest to the truth, and it is never early. Old ones are forgotten, because
// clocks drift and are set.
const WINDOW_MS = 10_000

export class LedgerClock {
  #since = Number.NEGATIVE_INFINITY
  #before = Number.POSITIVE_INFINITY
  #least = Number.POSITIVE_INFINITY

  /** An answer of the ledger's time `ledgerNow` came at `now` by our stopwatch. */
  compare(now: number, ledgerNow: number): void {
    if (now - this.#since > WINDOW_MS) {
      this.#before = this.#least
      this.#least = Number.POSITIVE_INFINITY
      this.#since = now
    }
    this.#least = Math.min(this.#least, now - ledgerNow)
  }

  /** Our stopwatch less the ledger's time. */
  get offset(): number {
    return Math.min(this.#before, this.#least)
  }
}
