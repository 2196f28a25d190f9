// When a worker stands by: jobs are then handed to it as they are enqueued, claimed by the same commit, and start a round trip
// and a flush earlier (docs/decisions/0029). It is for calm times: whoever is busy asks for many at once.
import type { Clock, Random } from '../domain/clock.js'
import type { Lane } from '../transport/transport.js'
import { type Loop, loop } from './loop.js'

/** Until it is full, and not again so soon after that: each time it says so, rows are written for each lane. */
const AGAIN_MS = 1_000
/** Or until it is handed more than so many in so long: whoever enqueues them waits for each other's NOTIFY (pitfall 10). */
const MANY = 20
const MANY_MS = 100
/** After a hand-over that was not heard, or if it cannot hear at all. */
const DEAF_MS = 60_000
/** It says so often that it is there, and looks for what it did not hear; without a word for 5 s it is not asked any more. */
const STAND_MS = 2_000
/** A hand-over is heard within this, or never. */
const HEARD_WITHIN_MS = 1_000
/** What was being handed over when it stood down has been by then: no statement takes a minute. Until then, it looks now and then. */
const LATE_MS = 65_000
const LATE_LOOK_MS = 20_000
const IDLE_MS = 3_600_000

export interface StandbyOptions {
  readonly clock: Clock
  readonly random: Random
  /** Where a job could start at once. */
  readonly lanes: () => readonly Lane[]
  /** Tells whoever enqueues; false: not possible, and nothing was said. */
  readonly say: (lanes: readonly Lane[]) => Promise<boolean>
  /** Says that it is still there, and takes what was handed over at least so long ago and not heard of. */
  readonly stand: (ms: number) => Promise<{ readonly stands: boolean; readonly found: number }>
  readonly onError: (error: unknown) => void
}

export class Standby {
  readonly #options: StandbyOptions
  readonly #loop: Loop
  #hasBegun = false
  #isWanted = false
  /** Until it is known that nobody hands anything over, somebody may. */
  #mayBeKnown = false
  #notBefore = 0
  #looksUntil = 0
  #handedSince = 0
  #handedCount = 0

  constructor(options: StandbyOptions) {
    this.#options = options
    this.#loop = loop({ ...options, step: () => this.#step() })
  }

  /** For when things are calm. */
  standUp(): void {
    if (this.#isWanted || this.#now < this.#notBefore || this.#options.lanes().length === 0) return
    this.#isWanted = true
    if (this.#hasBegun) this.#loop.nudge()
    else this.#loop.start()
    this.#hasBegun = true
  }

  /** Whoever could not hear should be able to now. */
  listens(): void {
    this.#notBefore = 0
  }

  /** One was handed over; whether there is no room for more. */
  handed(isFull: boolean): void {
    const now = this.#now
    if (now - this.#handedSince > MANY_MS) {
      this.#handedSince = now
      this.#handedCount = 0
    }
    this.#handedCount += 1
    if (isFull || this.#handedCount > MANY) this.standDown()
  }

  /** Nothing more is handed over, as soon as that is known. */
  standDown(againMs = AGAIN_MS): void {
    if (!this.#isWanted) return
    this.#isWanted = false
    this.#notBefore = this.#now + againMs
    this.#loop.nudge()
  }

  /** For a worker that leaves: takes what has been handed over until now. Nothing more will be, or hardly. */
  async leave(): Promise<void> {
    const { say, stand } = this.#options
    this.#isWanted = false
    await this.#loop.stop()
    if (!this.#mayBeKnown && this.#now >= this.#looksUntil) return
    await say([])
    await stand(0)
  }

  async #step(): Promise<number> {
    if (this.#isWanted && !this.#mayBeKnown) return this.#begin()
    if (!this.#isWanted && this.#mayBeKnown && (await this.#options.say([]))) {
      this.#mayBeKnown = false
      this.#looksUntil = this.#now + LATE_MS
      return HEARD_WITHIN_MS
    }
    return this.#mayBeKnown || this.#now < this.#looksUntil ? this.#look() : IDLE_MS
  }

  async #begin(): Promise<number> {
    const { lanes, say } = this.#options
    const open = lanes()
    // Before it is said: if the answer is lost, it may have been.
    this.#mayBeKnown = true
    if (open.length > 0 && (await say(open))) return STAND_MS
    this.#mayBeKnown = false
    this.standDown(open.length > 0 ? DEAF_MS : AGAIN_MS)
    return IDLE_MS
  }

  async #look(): Promise<number> {
    const { stands, found } = await this.#options.stand(HEARD_WITHIN_MS)
    if (found > 0) this.standDown(DEAF_MS)
    // The database has forgotten it, as after a crash.
    else if (this.#isWanted && !stands) {
      this.#mayBeKnown = false
      return 0
    }
    return this.#mayBeKnown ? STAND_MS : LATE_LOOK_MS
  }

  get #now(): number {
    return this.#options.clock.monotonic()
  }
}
