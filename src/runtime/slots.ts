// The places of a worker: who runs, who was claimed ahead and waits here, and how many more there is room for, over all
// and in each lane.
import type { Lease } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Policy } from '../domain/policy.js'
import type { AttemptSpan } from '../domain/tracing.js'
import type { LaneDemand, Lane as LaneName } from '../transport/transport.js'
import { Abort } from './abort.js'
import type { AnyJobDefinition } from './definition.js'
import type { ServiceState } from './service-state.js'

export interface Lane {
  readonly definition: AnyJobDefinition
  /** What is known of the service its jobs call. */
  readonly service: ServiceState | undefined
  /** Running and waiting jobs. */
  load: number
  /** How many more are worth claiming, if not as many as there is room for: fewer, or more of which few will stay. */
  most?: () => number
  /** True: its rate limit is far from being reached, and the job waits in line with the others. */
  hasPlenty?: (job: ClaimedJob) => boolean
  /** Takes a slot of that limit for a job that starts now; false: it has none any more. */
  takeSpare?: (job: ClaimedJob, now: number) => boolean
}

/** A claimed job that waits here for a place or, with a rate limit, in a place of its own for its slot. */
export interface Held {
  readonly job: ClaimedJob
  readonly lane: Lane
  readonly definition: AnyJobDefinition
  /** The monotonic time of its claim. */
  readonly fetchedAt: number
  /** That of its start; as long as it waits, that of its claim. */
  startedAt: number
  /** These are set when it starts: it is then all that an attempt is given (runtime/attempt.ts). */
  abort: Abort | undefined
  policy: Policy | undefined
  span: AttemptSpan | undefined
  /** Where it stands among those that run. */
  place: number
}

export interface Running extends Held {
  abort: Abort
  policy: Policy
}

export class Slots {
  readonly #concurrency: number
  readonly #lanes: ReadonlyMap<string, Lane>
  /** Of the job that came last: the next one is mostly of the same. */
  #lastLane: Lane | undefined
  readonly #running: Running[] = []
  #waiting: Held[] = []
  /** A place is kept for each of these, until its rate limit lets it start. */
  readonly #reserved = new Map<Lease, Held>()
  /** Of those, so many places are kept at most. */
  mostReserved = Number.POSITIVE_INFINITY
  /** Where the line of the waiting begins: taking the first one must not move all the others. */
  #first = 0

  constructor(
    definitions: readonly AnyJobDefinition[],
    concurrency: number,
    serviceOf: (service: string | undefined) => ServiceState | undefined,
  ) {
    this.#concurrency = concurrency
    const laneOf = (definition: AnyJobDefinition): Lane => {
      return { definition, service: serviceOf(definition.service), load: 0 }
    }
    this.#lanes = new Map(definitions.map(definition => [laneKey(definition), laneOf(definition)]))
  }

  get lanes(): Lane[] {
    return [...this.#lanes.values()]
  }

  get runningCount(): number {
    return this.#running.length
  }

  get waitingCount(): number {
    return this.#waiting.length - this.#first
  }

  get reservedCount(): number {
    return this.#reserved.size
  }

  /** Places that nobody has or waits for. */
  get freeCount(): number {
    return this.#concurrency - this.#running.length - this.#reserved.size - this.waitingCount
  }

  isReserved({ job }: Held): boolean {
    return this.#reserved.has(job.lease)
  }

  /** Since when the first of the waiting has been here. */
  waitedSince(): number {
    return this.#waiting[this.#first]?.fetchedAt ?? Number.POSITIVE_INFINITY
  }

  running(): Running[] {
    return [...this.#running]
  }

  /** The claims of everything that is here. */
  leases(): Lease[] {
    return [
      ...this.#running.map(({ job }) => job.lease),
      ...this.#reserved.keys(),
      ...this.#waiting.slice(this.#first).map(({ job }) => job.lease),
    ]
  }

  /** What there is room for with `ahead` jobs held ready; not asked for one by one while some are ready. */
  demand(ahead: number): { demand: LaneDemand[]; limit: number } {
    const room = this.#room(ahead)
    if (room < 1) return { demand: [], limit: 0 }
    return this.#demandOf(room, service => service === undefined || service.free)
  }

  /** Whether there is room for a job of this lane, with `ahead` held ready. */
  hasRoomFor(job: ClaimedJob, ahead: number): boolean {
    const room = this.#room(ahead)
    if (room < 1) return false
    const lane = this.#laneOf(job)
    return (lane.service?.free ?? true) && limitOf(lane, room) >= 1
  }

  /** Where a job could start at once: it has no rate limit to wait for, and its service lets all through. */
  openLanes(): LaneName[] {
    if (this.freeCount < 1) return []
    const open = this.lanes.filter(({ definition, service, load }) => {
      return !definition.rateLimit && (service?.free ?? true) && load < definition.concurrency
    })
    return open.map(({ definition: { queue, name } }) => ({ queue, name }))
  }

  /** The services here that let only some jobs through now, with what there is room for of each. */
  paced(ahead: number): { service: ServiceState; demand: LaneDemand[]; limit: number }[] {
    const services = new Set<ServiceState>()
    for (const { service } of this.#lanes.values()) if (service && !service.free) services.add(service)
    const room = services.size === 0 ? 0 : this.#room(ahead)
    if (room < 1) return []
    return [...services].map(service => ({ service, ...this.#demandOf(room, other => other === service) }))
  }

  #room(ahead: number): number {
    const room = this.#concurrency + ahead - this.#running.length - this.#reserved.size - this.waitingCount
    return this.waitingCount > 0 && room < ahead / 2 ? 0 : room
  }

  #demandOf(
    room: number,
    wanted: (service: ServiceState | undefined) => boolean,
  ): { demand: LaneDemand[]; limit: number } {
    const demand: LaneDemand[] = []
    let total = 0
    let beyond = 0
    for (const lane of this.#lanes.values()) {
      const { definition, service } = lane
      if (!wanted(service)) continue
      const limit = limitOf(lane, room)
      if (limit < 1) continue
      beyond += Math.max(0, limit - room)
      demand.push({ queue: definition.queue, name: definition.name, limit })
      total += limit
    }
    return { demand, limit: Math.min(room + beyond, total) }
  }

  /** Takes a job in: in line, or, if it waits for its rate limit, in a place of its own. */
  hold(job: ClaimedJob, fetchedAt: number): Held {
    const lane = this.#laneOf(job)
    const { definition } = lane
    // biome-ignore format: one line for what belongs together
    const held: Held = {
      job, lane, definition, fetchedAt, startedAt: fetchedAt,
      abort: undefined, policy: undefined, span: undefined, place: -1,
    }
    lane.load += 1
    if (!definition.rateLimit || lane.hasPlenty?.(job)) {
      this.#waiting.push(held)
    } else this.#reserved.set(job.lease, held)
    return held
  }

  /** One that was taken from the line has to wait in a place of its own. */
  reserve(held: Held): void {
    this.#reserved.set(held.job.lease, held)
  }

  /** It does not start here: its place is free. */
  unreserve({ job, lane }: Held): void {
    if (this.#reserved.delete(job.lease)) lane.load -= 1
  }

  /** The next one that waits, if there is a place for it and it may start. */
  next(may: (held: Held) => boolean = () => true): Held | undefined {
    if (!this.#hasPlace) return undefined
    const held = this.#waiting[this.#first]
    // INVARIANT: nothing starts before its payload is here.
    if (!held || held.job.apart || !may(held)) return undefined
    this.#first += 1
    if (this.#first === this.#waiting.length) {
      this.#waiting = []
      this.#first = 0
    }
    return held
  }

  /** The next one that a broker carries, if the line stops at one whose payload the ledger has yet to bring: it does not wait for that. */
  nextCarried(may: (held: Held) => boolean = () => true): Held | undefined {
    if (!this.#hasPlace || !this.#waiting[this.#first]?.job.apart) return undefined
    const place = this.#waiting.findIndex(({ job }, place) => place > this.#first && job.carried)
    const held = this.#waiting[place]
    if (!held || !may(held)) return undefined
    this.#waiting.splice(place, 1)
    return held
  }

  get #hasPlace(): boolean {
    const kept = Math.min(this.#reserved.size, this.mostReserved)
    return this.#running.length + kept < this.#concurrency
  }

  /** From now on it runs: the same object, with the right to stop it and the policy that holds for it. */
  start(held: Held, policy: Policy): Running {
    const { lease } = held.job
    if (this.#reserved.size > 0) this.#reserved.delete(lease)
    held.abort = new Abort()
    held.policy = policy
    held.place = this.#running.length
    this.#running.push(held as Running)
    return held as Running
  }

  /** The last of those that run takes its place. */
  finish(held: Held): void {
    const { lane, place } = held
    if (this.#running[place] !== held) return
    const last = this.#running.pop() as Running
    if (last !== held) {
      last.place = place
      this.#running[place] = last
    }
    lane.load -= 1
  }

  #laneOf(job: ClaimedJob): Lane {
    const last = this.#lastLane
    if (last && last.definition.name === job.name && last.definition.queue === job.queue) return last
    const lane = this.#lanes.get(laneKey(job)) as Lane
    this.#lastLane = lane
    return lane
  }

  /** Takes out those that wait, all or some. */
  release(leaves: (held: Held) => boolean = () => true): Held[] {
    const waiting = this.#waiting.slice(this.#first)
    const released = [...this.#reserved.values(), ...waiting].filter(leaves)
    this.#waiting = waiting.filter(held => !leaves(held))
    this.#first = 0
    for (const { job } of released) this.#reserved.delete(job.lease)
    for (const { lane } of released) lane.load -= 1
    return released
  }
}

/** How many more of a lane there is room for. */
const limitOf = ({ definition, load, most }: Lane, room: number): number =>
  Math.min(most ? most() : room, definition.concurrency - load)

const laneKey = ({ queue, name }: { queue: string; name: string }): string => `${queue}\n${name}`
