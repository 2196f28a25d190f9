// How many jobs to claim ahead of free slots. Just enough to keep the slots busy while the next claim is on its way:
// nothing for slow handlers, where a job claimed early would only wait here instead of on an idle worker (and would be
// lost with this one), and hundreds for fast ones, where the round trip is what costs.
import type { ClaimedJob } from '../domain/job.js'
import { MOST_TOGETHER } from '../domain/pieces.js'

/** So many round trips of work: claims take longer now and then, and nobody should wait for one. */
const ROUND_TRIPS = 4
const MANY = 1_000
/** More than that only if they run within so long: whoever holds them may die, or become slow. */
const SOON_MS = 60
const MOST = 2_000
const WEIGHT = 0.5

type Fetched = Pick<ClaimedJob, 'payloadText'>

export class Prefetch {
  #finished = 0
  #since: number | undefined
  #perMs = 0
  #roundTripMs = 0
  #textOfJob = 0

  /** How many to hold ready. What was fast and ends no more counts as slow, the longer the more. */
  target(now: number): number {
    const sinceMs = this.#since === undefined ? 0 : now - this.#since
    const pace = this.#pace(sinceMs)
    const most = Math.min(MOST, Math.max(MANY, pace * SOON_MS), MOST_TOGETHER / this.#textOfJob)
    return Math.floor(Math.min(most, pace * this.#roundTripMs * ROUND_TRIPS))
  }

  /** Jobs a millisecond, as of the last claims; after the very first one, as of what has ended since. */
  #pace(sinceMs: number): number {
    if (sinceMs <= 0) return this.#perMs
    const latest = this.#finished / sinceMs
    if (this.#perMs === 0) return latest
    return sinceMs > this.#roundTripMs ? Math.min(this.#perMs, latest) : this.#perMs
  }

  jobFinished(): void {
    this.#finished += 1
  }

  fetched(startedAt: number, endedAt: number, jobs: readonly Fetched[]): void {
    if (jobs.length > 0) this.#textOfJob = blend(this.#textOfJob, textOf(jobs) / jobs.length)
    this.#roundTripMs = blend(this.#roundTripMs, endedAt - startedAt)
    if (this.#since !== undefined && endedAt > this.#since) {
      this.#perMs = blend(this.#perMs, this.#finished / (endedAt - this.#since))
    }
    this.#finished = 0
    this.#since = endedAt
  }
}

/** The first sight counts in full. */
const blend = (before: number, latest: number): number => (before === 0 ? latest : before + (latest - before) * WEIGHT)

const textOf = (jobs: readonly Fetched[]): number => {
  let length = 0
  for (const { payloadText } of jobs) length += payloadText.length
  return length
}
