// When a worker stands by: jobs are then handed to it as they are enqueued, claimed by the same commit, and start a round trip
// and a flush earlier (docs/decisions/0029). It is for calm times: whoever is busy asks for many at once.
import type { Clock } from '../domain/clock.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Lane } from '../transport/transport.js'

/** Until it is full, and not again so soon after that: each time it says so, a row is written for each lane. */
const AGAIN_MS = 1_000
/** Or until it is handed more than so many in so long: whoever enqueues them waits for each other's NOTIFY (pitfall 10). */
const MANY = 20
const MANY_MS = 100
/** After a hand-over that was not heard, or if it cannot hear at all. */
const DEAF_MS = 60_000
/** A hand-over is heard within this, or never. */
const HEARD_WITHIN_MS = 1_000
/** What was being handed over when it stood down has been by then: no statement takes longer. */
const LATE_MS = 60_000

export interface StandbyOptions {
  readonly clock: Clock
  /** Where a job could start at once. */
  readonly lanes: () => readonly Lane[]
  /** Tells whoever enqueues; false: not possible. */
  readonly say: (lanes: readonly Lane[]) => Promise<boolean>
  /** What was handed over at least so long ago and not heard of. */
  readonly unheard: (forMs: number) => Promise<ClaimedJob[]>
  readonly onError: (error: unknown) => void
}

export class Standby {
  readonly #options: StandbyOptions
  #stands = false
  /** Nothing is said while something is being said. */
  #saying: Promise<void> = Promise.resolve()
  #notBefore = 0
  /** When to look for what was not heard. */
  #looksAt: number[] = []
  #handedSince = 0
  #handedCount = 0

  constructor(options: StandbyOptions) {
    this.#options = options
  }

  /** For when things are calm. */
  standUp(): void {
    const { clock, lanes } = this.#options
    if (this.#stands || clock.monotonic() < this.#notBefore) return
    const free = lanes()
    if (free.length === 0) return
    this.#stands = true
    this.#notBefore = clock.monotonic() + AGAIN_MS
    this.#say(async say => {
      if (!this.#stands) return
      if (await say(free)) this.#looksAt = [clock.monotonic() + HEARD_WITHIN_MS]
      else this.#isDeaf()
    })
  }

  /** One was handed over; whether there is room for more. */
  handed(isFull: boolean): void {
    const now = this.#options.clock.monotonic()
    if (now - this.#handedSince > MANY_MS) {
      this.#handedSince = now
      this.#handedCount = 0
    }
    this.#handedCount += 1
    if (isFull || this.#handedCount > MANY) this.standDown()
  }

  /** Nothing more is handed over, as soon as that is known. */
  standDown(): void {
    if (!this.#stands) return
    const now = this.#options.clock.monotonic()
    this.#stands = false
    this.#notBefore = now + AGAIN_MS
    this.#looksAt = [now + HEARD_WITHIN_MS, now + LATE_MS]
    this.#say(async say => void (await say([])))
  }

  /** What was handed over and not heard of, whenever it is time to look. */
  async missed(): Promise<ClaimedJob[]> {
    const { clock, unheard } = this.#options
    const [next] = this.#looksAt
    if (next === undefined || next > clock.monotonic()) return []
    const missed = await unheard(HEARD_WITHIN_MS)
    this.#looksAt.shift()
    if (this.#stands) this.#looksAt = [clock.monotonic() + HEARD_WITHIN_MS]
    if (missed.length > 0) {
      this.standDown()
      this.#isDeaf()
    }
    return missed
  }

  /** For a worker that leaves: what has been handed over until now. Nothing more will be, or hardly. */
  async last(): Promise<ClaimedJob[]> {
    const stood = this.#stands || this.#looksAt.length > 0
    this.standDown()
    await this.#saying
    return stood ? this.#options.unheard(0) : []
  }

  #isDeaf(): void {
    this.#stands = false
    this.#notBefore = this.#options.clock.monotonic() + DEAF_MS
  }

  #say(what: (say: StandbyOptions['say']) => Promise<void>): void {
    const { say, onError } = this.#options
    this.#saying = this.#saying
      .then(() => what(say))
      .catch(error => {
        this.#isDeaf()
        onError(error)
      })
  }
}
