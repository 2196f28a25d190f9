// When a worker looks for work in the ledger: again at once while there is more, soon after there was some, and then less and
// less often, until something stirs.
import type { Clock } from '../domain/clock.js'
import type { ClaimedJob } from '../domain/job.js'
import type { LaneDemand } from '../transport/transport.js'

/** After work, look again soon: a job committed while its enqueuer saw a busy queue is not announced. */
const FIRST_LOOK_MS = 25
/** After so long in which nothing stirred, things are quiet. */
const QUIET_MS = 100
/** With no more jobs than this in two spans of so long, they are calm. */
const FEW = 10
const SPAN_MS = 100

export interface Look {
  readonly demand: readonly LaneDemand[]
  readonly limit: number
  readonly jobs: readonly ClaimedJob[]
  /** How many lanes there are, whether or not anything was asked for of each. */
  readonly lanes: number
}

export class Looks {
  readonly #clock: Clock
  readonly #pollMs: number
  #againMs = FIRST_LOOK_MS
  #nextAt = 0
  /** When there last was work to ask for, or may have been. */
  #stirredAt = 0
  /** What was found in the present span and in the one before. */
  #spanSince = 0
  #found = 0
  #foundBefore = 0
  /** The last look saw the end of every lane it asked for ... */
  #sawEnd = false
  /** ... and that was every lane there is. */
  #askedAll = false

  constructor(clock: Clock, pollMs: number) {
    this.#clock = clock
    this.#pollMs = pollMs
  }

  /** There may be work. */
  stir(): void {
    this.#againMs = FIRST_LOOK_MS
    this.#stirredAt = this.#clock.monotonic()
    this.#nextAt = 0
  }

  /** What was seen before is old: somebody looks now. */
  begin(): void {
    this.#sawEnd = false
  }

  /** A look was answered. Returns in how long to look again. */
  saw({ demand, limit, jobs, lanes }: Look): number {
    const now = this.#clock.monotonic()
    if (jobs.length > 0) this.#stirredAt = now
    this.#count(jobs.length, now)
    if (jobs.length === limit) return 0
    this.#sawEnd = demand.every(lane => hasRest(lane, jobs))
    this.#askedAll = demand.length === lanes
    this.#againMs = jobs.length > 0 ? FIRST_LOOK_MS : Math.min(this.#againMs * 2, this.#pollMs)
    this.#nextAt = now + this.#againMs
    return this.#againMs
  }

  /** How long until the next look; 0: it is time, or something has stirred. */
  get restMs(): number {
    return Math.max(0, this.#nextAt - this.#clock.monotonic())
  }

  #count(jobs: number, now: number): void {
    const spans = Math.floor((now - this.#spanSince) / SPAN_MS)
    if (spans > 0) {
      this.#foundBefore = spans === 1 ? this.#found : 0
      this.#found = 0
      this.#spanSince = now
    }
    this.#found += jobs
  }

  /** The last look saw the end of the line, and there have been few jobs of late. */
  get isCalm(): boolean {
    return this.#sawEnd && this.#found + this.#foundBefore <= FEW
  }

  /** For a while there was nothing, with room for more of whatever sort: one more place is no reason to look. */
  get isQuiet(): boolean {
    return this.#sawEnd && this.#askedAll && this.#clock.monotonic() - this.#stirredAt >= QUIET_MS
  }
}

/** More of a lane was asked for than there was. */
function hasRest({ queue, name, limit }: LaneDemand, jobs: readonly ClaimedJob[]): boolean {
  let found = 0
  for (const job of jobs) if (job.queue === queue && job.name === name) found += 1
  return found < limit
}
