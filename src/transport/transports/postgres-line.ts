// Where a consumer goes on looking. Running jobs keep their places at the front of their line, and behind them lies what
// has ended and was not vacuumed yet: a claim that began at the start each time would step over all of them each time. A
// full answer says that everything up to its last job is taken: the next look begins there, and for a moment only,
// because a job may come in before it (a higher priority, a transaction that took its place early and committed late, one
// given back), and because from there on, rows that look as if somebody was taking them are stepped over: while a transaction runs for long, that is
// not known of one who broke off meanwhile.
import type { Clock } from '../../domain/clock.js'
import type { ClaimedJob } from '../../domain/job.js'
import type { LaneDemand } from '../transport.js'

/** A job that comes in before the look is overlooked for no longer than this ... */
const WHOLE_EVERY_MS = 50
/** ... unless looking at the whole line takes long: then that is at most one part in so many of the time ... */
const SHARE = 20
/** ... and never longer than this. */
const LONGEST_MS = 2_000

interface Front {
  readonly after: string
  /** When to look at the line from its start again. */
  readonly wholeAt: number
}

export class Line {
  readonly #clock: Clock
  readonly #fronts = new Map<string, Front>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Claims through `claim`, beginning where it is worth while. */
  async claim(
    demand: readonly LaneDemand[],
    claim: (lanes: readonly LaneDemand[]) => Promise<ClaimedJob[]>,
  ): Promise<ClaimedJob[]> {
    const askedAt = this.#clock.monotonic()
    const lanes = demand.map(lane => {
      const front = this.#fronts.get(key(lane))
      return front && front.wholeAt > askedAt ? { ...lane, after: front.after } : lane
    })
    const jobs = await claim(lanes)
    const [lane] = lanes
    // Of several lanes it is not known how far each was looked at.
    if (lane && lanes.length === 1) this.#saw(lane, jobs, askedAt)
    return jobs
  }

  #saw(lane: LaneDemand, jobs: readonly ClaimedJob[], askedAt: number): void {
    const after = jobs.length < lane.limit ? undefined : jobs.at(-1)?.line
    const before = this.#fronts.get(key(lane))
    if (after === undefined) this.#fronts.delete(key(lane))
    else
      this.#fronts.set(key(lane), { after, wholeAt: lane.after && before ? before.wholeAt : this.#nextWhole(askedAt) })
  }

  #nextWhole(askedAt: number): number {
    const now = this.#clock.monotonic()
    return now + Math.min(LONGEST_MS, Math.max(WHOLE_EVERY_MS, SHARE * (now - askedAt)))
  }
}

const key = ({ queue, name }: LaneDemand): string => `${queue}\n${name}`
