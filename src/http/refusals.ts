// Refused attempts leave a line in the audit: who, what, why. At most so many a minute from one process; what was left out is
// counted in the next.
import type { Clock } from '../domain/clock.js'
import type { ErrorCode } from '../domain/errors.js'
import type { Audit } from '../operator/audit.js'

export interface Refusal {
  readonly actor: string
  /** The route, not the address that was asked for: that may be anything. */
  readonly route: string
  readonly code: ErrorCode
  readonly address: string
}

const MOST_A_MINUTE = 60
const MINUTE_MS = 60_000

export class Refusals {
  readonly #clock: Clock
  readonly #write: Audit['write']
  #since: number
  #written = 0
  #leftOut = 0

  constructor(clock: Clock, write: Audit['write']) {
    this.#clock = clock
    this.#write = write
    this.#since = clock.monotonic()
  }

  /** Never fails the request it is about. */
  async record({ actor, route, code, address }: Refusal): Promise<void> {
    const now = this.#clock.monotonic()
    if (now >= this.#since + MINUTE_MS) {
      this.#since = now
      this.#written = 0
    }
    if (this.#written >= MOST_A_MINUTE) {
      this.#leftOut += 1
      return
    }
    this.#written += 1
    const leftOut = this.#leftOut
    this.#leftOut = 0
    const after = { code, address: address.slice(0, 100), ...(leftOut > 0 && { leftOut }) }
    await this.#write({ actor, action: 'refused', targetType: 'request', target: route, after }).catch(() => {})
  }
}
