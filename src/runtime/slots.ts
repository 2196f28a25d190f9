// The places of a worker: who runs, who was claimed ahead and waits here, and how many more there is room for, over all
// and in each lane.
import type { Lease } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { LaneDemand } from '../transport/transport.js'
import type { Abort } from './abort.js'
import type { AnyJobDefinition } from './definition.js'

export interface Lane {
  readonly definition: AnyJobDefinition
  /** Running and waiting jobs. */
  load: number
}

/** A claimed job that waits here for a place. `fetchedAt`: the monotonic time of its claim. */
export interface Held {
  readonly job: ClaimedJob
  readonly lane: Lane
  readonly fetchedAt: number
}

export interface Running extends Held {
  readonly abort: Abort
}

export class Slots {
  readonly #concurrency: number
  readonly #lanes: ReadonlyMap<string, Lane>
  readonly #running = new Map<Lease, Running>()
  #waiting: Held[] = []
  /** Where the line of the waiting begins: taking the first one must not move all the others. */
  #first = 0

  constructor(definitions: readonly AnyJobDefinition[], concurrency: number) {
    this.#concurrency = concurrency
    this.#lanes = new Map(definitions.map(definition => [laneKey(definition), { definition, load: 0 }]))
  }

  get lanes(): Lane[] {
    return [...this.#lanes.values()]
  }

  get runningCount(): number {
    return this.#running.size
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#first
  }

  /** Since when the first of the waiting has been here. */
  waitedSince(): number {
    return this.#waiting[this.#first]?.fetchedAt ?? Number.POSITIVE_INFINITY
  }

  running(): Running[] {
    return [...this.#running.values()]
  }

  /** The claims of everything that is here. */
  leases(): Lease[] {
    return [...this.#running.keys(), ...this.#waiting.slice(this.#first).map(({ job }) => job.lease)]
  }

  /** What there is room for with `ahead` jobs held ready; not asked for one by one while some are ready. */
  demand(ahead: number): { demand: LaneDemand[]; limit: number } {
    const room = this.#concurrency + ahead - this.#running.size - this.waitingCount
    if (room < 1 || (this.waitingCount > 0 && room < ahead / 2)) return { demand: [], limit: 0 }
    const demand: LaneDemand[] = []
    let total = 0
    for (const { definition, load } of this.#lanes.values()) {
      const limit = Math.min(room, definition.concurrency - load)
      if (limit < 1) continue
      demand.push({ queue: definition.queue, name: definition.name, limit })
      total += limit
    }
    return { demand, limit: Math.min(room, total) }
  }

  hold(job: ClaimedJob, fetchedAt: number): void {
    const lane = this.#lanes.get(laneKey(job)) as Lane
    lane.load += 1
    this.#waiting.push({ job, lane, fetchedAt })
  }

  /** The next one that waits, if there is a place for it. */
  next(): Held | undefined {
    if (this.#running.size >= this.#concurrency) return undefined
    const held = this.#waiting[this.#first]
    if (!held) return undefined
    this.#first += 1
    if (this.#first === this.#waiting.length) {
      this.#waiting = []
      this.#first = 0
    }
    return held
  }

  start(running: Running): void {
    this.#running.set(running.job.lease, running)
  }

  finish({ job, lane }: Held): void {
    this.#running.delete(job.lease)
    lane.load -= 1
  }

  /** Takes out those that wait, all or those of one queue. */
  release(queue?: string): Held[] {
    const waiting = this.#waiting.slice(this.#first)
    const released = waiting.filter(({ job }) => queue === undefined || job.queue === queue)
    this.#waiting = waiting.filter(held => !released.includes(held))
    this.#first = 0
    for (const { lane } of released) lane.load -= 1
    return released
  }
}

const laneKey = ({ queue, name }: { queue: string; name: string }): string => `${queue}\n${name}`
