// Keeps the queue of a broker that shows dead letters in step with the ledger: open letters of the broker's queues are
// published there; those that were redriven, closed or removed are taken out. One process at a time does it; each pass is
// bounded, whatever there is. What is shown is on record after it is published: a crash in between shows a letter twice, and
// whoever takes over looks through the queue once and takes the second one out.
import { isJobId, type JobId, newId } from '../domain/ids.js'
import { leaveDuty, takeDuty } from '../ledger/duty.js'
import {
  forgetShown,
  type LetterToShow,
  lettersGone,
  lettersToShow,
  noteShown,
  rightlyShown,
} from '../ledger/mirror.js'
import type { Broker, MirrorQueue } from '../transport/broker.js'
import { type Loop, loop, type Role } from './loop.js'
import type { Runtime } from './runtime.js'

const EVERY_MS = 1_000
/** Looking takes at most one part in so many of the time, however many letters there are. */
const SHARE = 20
const DUTY_MS = 30_000
const ASK_AGAIN_MS = 5_000
const BATCH = 500
/** A letter may be committed so long after others that died later. */
const OVERLAP_MS = 60_000
/** Everything is looked at again so often. */
const WHOLE_EVERY_MS = 300_000

/** Undefined: no broker shows dead letters. */
export function mirrors(runtime: Runtime): Role | undefined {
  const roles = (runtime.carriers?.brokers ?? []).flatMap(broker =>
    broker.mirror ? [new Mirror(runtime, broker)] : [],
  )
  if (roles.length === 0) return undefined
  return {
    start: () => roles.forEach(role => void role.start()),
    stop: async () => void (await Promise.all(roles.map(role => role.stop()))),
  }
}

class Mirror implements Role {
  readonly #runtime: Runtime
  readonly #broker: Broker
  readonly #queue: MirrorQueue
  readonly #name: string
  readonly #holder = newId()
  readonly #loop: Loop
  /** Where the next look for new letters begins; null: at the start. */
  #since: number | null = null
  #wholeAt = 0
  #hasDuty = false
  /** Messages of the present round through the queue that were not looked at; 0: no round is under way. */
  #leftOfRound = 0
  #goneInRound = new Set<JobId>()

  constructor(runtime: Runtime, broker: Broker) {
    const { announce } = runtime
    this.#runtime = runtime
    this.#broker = broker
    this.#queue = broker.mirror as MirrorQueue
    this.#name = this.#queue.name
    const onError = (error: unknown) =>
      announce('error', () => ({ where: `mirroring dead letters to ${this.#name}`, error }))
    this.#loop = loop({ ...runtime, step: () => this.#step(), onError })
  }

  start(): void {
    this.#loop.start()
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    if (this.#hasDuty) await leaveDuty(this.#runtime.db, this.#duty, this.#holder).catch(() => {})
  }

  get #duty(): string {
    return `mirror ${this.#name}`
  }

  async #step(): Promise<number> {
    const { db, clock } = this.#runtime
    if (!this.#broker.connected) return EVERY_MS
    const had = this.#hasDuty
    this.#hasDuty = await takeDuty(db, this.#duty, this.#holder, DUTY_MS)
    if (!this.#hasDuty) return ASK_AGAIN_MS
    const startedAt = clock.monotonic()
    if (!had) await this.#beginRound()
    const removing = await this.#remove()
    const adding = await this.#add()
    if (removing || adding) return 0
    return Math.max(EVERY_MS, (clock.monotonic() - startedAt) * SHARE)
  }

  /** True: there is more to take out. */
  async #remove(): Promise<boolean> {
    const { db } = this.#runtime
    if (this.#leftOfRound <= 0) {
      const gone = await lettersGone(db, this.#name, BATCH)
      if (gone.length === 0) return false
      await this.#beginRound()
      this.#goneInRound = new Set(gone)
    }
    const { looked, removed } = await this.#queue.sweep(BATCH, ids => this.#gone(ids))
    const ids = removed.filter(isJobId)
    await forgetShown(
      db,
      ids.filter(id => this.#goneInRound.delete(id)),
    )
    this.#leftOfRound -= looked
    if (looked > 0 && this.#leftOfRound > 0) return true
    // Somebody else took these out: they are not there to be found.
    await forgetShown(db, [...this.#goneInRound])
    this.#goneInRound.clear()
    this.#leftOfRound = 0
    return false
  }

  async #beginRound(): Promise<void> {
    this.#goneInRound.clear()
    this.#leftOfRound = await this.#queue.beginRound()
  }

  async #gone(ids: readonly string[]): Promise<Set<string>> {
    const ours = ids.filter(isJobId)
    const staying = await rightlyShown(this.#runtime.db, ours)
    return new Set(ours.filter(id => !staying.has(id)))
  }

  /** True: there is more to show. */
  async #add(): Promise<boolean> {
    const { db, clock, carriers } = this.#runtime
    const now = clock.monotonic()
    if (now >= this.#wholeAt) {
      this.#since = null
      this.#wholeAt = now + WHOLE_EVERY_MS
    }
    const queues = carriers?.queuesOf(this.#broker.name) ?? []
    if (queues.length === 0) return false
    const letters = await lettersToShow(db, queues, this.#since, BATCH)
    const last = letters.at(-1)
    if (!last) return false
    await this.#queue.add(letters.map(toMessage))
    await noteShown(db, this.#name, letters)
    this.#since = last.diedAt - OVERLAP_MS
    return letters.length === BATCH
  }
}

const toMessage = (letter: LetterToShow) => ({
  headers: {
    'redrive-id': letter.id,
    'redrive-name': letter.name,
    'redrive-queue': letter.queue,
    'redrive-kind': letter.kind,
    'redrive-reason': letter.reason,
    'redrive-attempts': String(letter.attempts),
    'redrive-died-at': String(Math.floor(letter.diedAt)),
  },
  body: letter.payloadText,
})
