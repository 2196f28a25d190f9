// Where jobs with a rate limit wait between their claim and their start. Each keeps a place of the worker, asks the
// ledger for a slot of its key, and starts at its slot. Slots are given a moment ahead only: a job that gets none is
// held, and let go in the order of the line when its turn comes (rate-releaser.ts). Nobody spends an attempt.
import type { Timer } from '../domain/clock.js'
import type { Hold } from '../domain/outcome.js'
import type { Slot } from '../domain/rate-limit.js'
import { acquireRate, heldByRate, type RateAnswer } from '../ledger/rate-limit.js'
import { slotsFrom } from '../policy/rate.js'
import { LedgerClock } from './ledger-clock.js'
import type { Loop } from './loop.js'
import { keyOf, type Line, type Lines, lineOf, nameOf, overItsRate, requestOf } from './rate-line.js'
import { HORIZON_MS, PAUSE_MS, rateReleaser, WINDOW_MS } from './rate-releaser.js'
import { checkShared, type RateRule, rateKey } from './rate-rule.js'
import type { Runtime } from './runtime.js'
import type { Held, Lane, Slots } from './slots.js'
import { SpareSlots } from './spare-slots.js'

export interface RateGateOptions {
  readonly slots: Slots
  readonly concurrency: number
  /** How many jobs are worth holding ready beyond the places. */
  readonly ahead: () => number
  readonly start: (held: Held) => void
  readonly hold: (held: Held, hold: Hold) => void
  readonly giveBack: (held: Held) => void
  /** There may be room for more jobs again. */
  readonly onRoom: () => void
  readonly onError: (error: unknown) => void
}

/** By our stopwatch. */
interface Appointment extends Slot {
  readonly held: Held
}

/** A lane with a single key is asked for again when slots for so long ahead are free. */
const LEAD_MS = HORIZON_MS / 2
const SHORTEST_CLOSE_MS = 10
const AFTER_TROUBLE_MS = 1_000
/** A key with many jobs at the front of the line must not keep those behind it waiting for long. */
const MOST_APPETITE = 500
/** From the claim to the start it takes two questions to the ledger, where other jobs need one. */
const ROUND_TRIPS = 2

/** Slots without a job are kept for so long. */
const SPARE_MS = 60

/** Undefined: no job has a rate limit, and nothing is paid for it. */
export function rateGate(runtime: Runtime, options: RateGateOptions): RateGate | undefined {
  const rules = options.slots.lanes.flatMap(({ definition }) => definition.rateLimit ?? [])
  if (rules.length === 0) return undefined
  checkShared(rules)
  return new RateGate(runtime, options)
}

export class RateGate {
  readonly #runtime: Runtime
  readonly #options: RateGateOptions
  readonly #releaser: Loop
  #asking: Held[] = []
  #busy = false
  readonly #clock = new LedgerClock()
  /** By the names of the limits. */
  readonly #spares = new Map<string, { readonly rule: RateRule; readonly slots: SpareSlots }>()
  #appointments: Appointment[] = []
  /** Their slots have come; in the order in which they start when there are places. */
  #due: Appointment[] = []
  /** All that asked lately could start at once: the limits are not reached, and more may be claimed ahead. */
  #idle = false
  #timer: Timer | undefined
  #reopening: Timer | undefined
  /** So many more than there are places are claimed while nearly all that is claimed has to be held. */
  #appetite = 0
  readonly #closedUntil = new Map<Lane, number>()
  /** They had a slot and missed it: they go before those that never had one. */
  readonly #late = new WeakSet<Held>()

  constructor(runtime: Runtime, options: RateGateOptions) {
    const { slots, concurrency, onError } = options
    this.#runtime = runtime
    this.#options = options
    this.#releaser = rateReleaser(runtime, onError)
    // A job that waits for its slot keeps a place idle: other lanes must not go without.
    const alone = slots.lanes.every(({ definition }) => definition.rateLimit !== undefined)
    slots.mostReserved = alone ? concurrency : Math.ceil(concurrency / 2)
    for (const lane of slots.lanes) {
      const rule = lane.definition.rateLimit
      if (!rule) continue
      lane.most = () => this.#mostOf(lane)
      const spares = this.#sparesOf(rule)
      // For jobs whose key is known without a look at their payload.
      if (typeof rule.key === 'function') continue
      lane.hasPlenty = job => spares.has(rateKey(rule, job))
      lane.takeSpare = (job, now) => spares.take(rateKey(rule, job) as string, now)
    }
  }

  #sparesOf(rule: RateRule): SpareSlots {
    const known = this.#spares.get(rule.name)
    if (known) return known.slots
    const slots = new SpareSlots(SPARE_MS)
    this.#spares.set(rule.name, { rule, slots })
    return slots
  }

  /** Takes in jobs that were claimed and have no slot. */
  admit(claimed: readonly Held[]): void {
    for (const held of claimed) this.#asking.push(held)
    this.#ask()
  }

  /** Whether one that waited in line may start now. Its limit had plenty when it was claimed; if no more, it asks. */
  lets(held: Held): boolean {
    const { job, lane } = held
    if (!lane.takeSpare || lane.takeSpare(job, this.#runtime.clock.monotonic())) return true
    this.#options.slots.reserve(held)
    this.#late.add(held)
    this.#asking.push(held)
    return false
  }

  start(): void {
    this.#releaser.start()
  }

  async stop(): Promise<void> {
    await this.#releaser.stop()
    this.#timer?.cancel()
    this.#reopening?.cancel()
    this.#asking = []
    this.#appointments = []
    this.#due = []
  }

  /** Somebody here could start if there were a place. */
  get isDue(): boolean {
    return this.#due.length > 0
  }

  /** How many jobs of a lane are worth claiming now. */
  #mostOf(lane: Lane): number {
    const { slots } = this.#options
    if ((this.#closedUntil.get(lane) ?? 0) > this.#runtime.clock.monotonic()) return 0
    const places = Math.min(slots.freeCount, slots.mostReserved - slots.reservedCount)
    const rule = lane.definition.rateLimit as RateRule
    const { key, settings, pace } = rule
    const asks = key !== undefined || !this.#sparesOf(rule).has('')
    const ahead = this.#idle ? this.#options.ahead() * (asks ? ROUND_TRIPS : 1) : 0
    // Not one by one while some are ready.
    if (places < 0 && places < -ahead / 2) return 0
    if (key === undefined) return Math.min(places + ahead, settings.burst + Math.ceil(HORIZON_MS / pace.spacingMs))
    return places + Math.max(ahead, places > 0 ? this.#appetite : 0)
  }

  #ask(): void {
    if (this.#busy) return
    const lines: Lines = new Map()
    const now = this.#runtime.clock.monotonic()
    for (const { rule, slots } of this.#spares.values()) for (const key of slots.low(now)) lineOf(lines, rule, key)
    if (this.#asking.length === 0 && lines.size === 0) return
    this.#busy = true
    const batch = this.#asking
    this.#asking = []
    this.#acquire(batch, lines)
      .catch(error => this.#giveUp(batch, error))
      .finally(() => {
        this.#busy = false
        this.#ask()
      })
  }

  async #acquire(batch: readonly Held[], lines: Lines): Promise<void> {
    const { db, clock } = this.#runtime
    await this.#lineUp(batch, lines)
    this.#idle = true
    if (lines.size > 0) {
      const askedAt = clock.monotonic()
      const requests = [...lines.values()].map(line => {
        const waiting = line.released.length + line.fresh.length
        return requestOf(line, this.#sparesOf(line.rule).wanted(line.key, waiting, askedAt))
      })
      const answers = await acquireRate(db, requests, { horizonMs: HORIZON_MS, windowMs: WINDOW_MS })
      this.#clock.compare(clock.monotonic(), Math.max(...answers.map(({ now }) => now)))
      for (const answer of answers) this.#appoint(lines.get(heldByRate(answer.name, answer.key)) as Line, answer)
    }
    if (batch.length > 0) this.#adaptAppetite(batch)
    this.#fit()
    this.#startDue()
    this.#options.onRoom()
  }

  #adaptAppetite(batch: readonly Held[]): void {
    const staying = batch.filter(held => this.#options.slots.isReserved(held)).length
    this.#appetite =
      staying > batch.length / 2 ? 0 : Math.min(MOST_APPETITE, Math.max(batch.length, this.#appetite * 2))
  }

  /** Who has no key is not limited, and has an appointment at once. */
  async #lineUp(batch: readonly Held[], lines: Lines): Promise<void> {
    const { slots, onError } = this.#options
    for (const held of batch) {
      const rule = held.lane.definition.rateLimit as RateRule
      const key = typeof rule.key === 'function' ? await keyOf(held, rule, onError) : rateKey(rule, held.job)
      if (!slots.isReserved(held)) continue
      if (key === undefined) {
        this.#appointments.push({ held, at: 0, until: Number.POSITIVE_INFINITY })
        continue
      }
      const { released, fresh } = lineOf(lines, rule, key)
      const letGo = held.job.heldBy === nameOf(rule, key) || this.#late.has(held)
      ;(letGo ? released : fresh).push(held)
    }
  }

  #appoint(line: Line, answer: RateAnswer): void {
    const { slots, hold } = this.#options
    const { offset } = this.#clock
    const { rule } = line
    const by = nameOf(rule, line.key)
    const jobs = [...line.released, ...line.fresh]
    const used = Math.min(jobs.length, answer.given)
    for (const [index, { at, until }] of slotsFrom({ ...answer, given: used }).entries()) {
      this.#appointments.push({ held: jobs[index] as Held, at: at + offset, until: until + offset })
    }
    this.#sparesOf(rule).learn(line.key, answer, used, offset, this.#runtime.clock.monotonic())
    if (answer.nextAt > answer.now) this.#idle = false
    const without = jobs.slice(used)
    for (const [index, held] of without.entries()) {
      if (!slots.isReserved(held)) continue
      const delayMs = answer.turnAt + index * answer.spacingMs - answer.now
      hold(held, { by, delayMs, reason: overItsRate(line) })
    }
    const [first] = without
    if (first) this.#releaser.nudgeIn(PAUSE_MS)
    if (first && rule.key === undefined) this.#close(first.lane, answer.nextAt + offset - LEAD_MS)
  }

  /**
   * More appointments than places, because more was claimed than there are places for: the last ones go back. Not while
   * the limits are idle: what was claimed ahead then may wait for a place, with its slot.
   */
  #fit(): void {
    const { slots, giveBack, concurrency } = this.#options
    this.#appointments = this.#appointments.filter(({ held }) => slots.isReserved(held))
    const places = Math.max(0, concurrency - slots.runningCount - this.#due.length)
    if (this.#idle || this.#appointments.length <= places) return
    for (const { held } of this.#appointments.splice(places)) giveBack(held)
  }

  /** Nothing of this lane is claimed for a while: it has one key, and that has no slots. */
  #close(lane: Lane, until: number): void {
    const { clock } = this.#runtime
    this.#closedUntil.set(lane, Math.max(until, clock.monotonic() + SHORTEST_CLOSE_MS))
    this.#reopening?.cancel()
    const next = Math.min(...this.#closedUntil.values())
    this.#reopening = clock.timer(Math.max(0, next - clock.monotonic()), () => this.#reopen(), { background: true })
  }

  #reopen(): void {
    const { clock } = this.#runtime
    const now = clock.monotonic()
    for (const [lane, until] of this.#closedUntil) if (until <= now) this.#closedUntil.delete(lane)
    const next = Math.min(...this.#closedUntil.values())
    if (next < Number.POSITIVE_INFINITY) {
      this.#reopening = clock.timer(next - now, () => this.#reopen(), { background: true })
    }
    this.#options.onRoom()
  }

  #startDue(): void {
    const { clock } = this.#runtime
    const now = clock.monotonic()
    const later: Appointment[] = []
    for (const appointment of this.#appointments) (appointment.at > now ? later : this.#due).push(appointment)
    this.#appointments = later
    this.#timer?.cancel()
    const next = later.reduce((first, { at }) => Math.min(first, at), Number.POSITIVE_INFINITY)
    if (later.length > 0) this.#timer = clock.timer(next - now, () => this.#startDue(), { background: true })
    this.startReady()
  }

  /**
   * Starts those whose slot has come, if there are places. Who missed it by too much would come too close to the next: it
   * asks again. INVARIANT: no more jobs run at once than may.
   */
  startReady(): void {
    const { slots, start, concurrency } = this.#options
    const { clock } = this.#runtime
    let gone = 0
    for (; gone < this.#due.length && slots.runningCount < concurrency; gone += 1) {
      const { held, until } = this.#due[gone] as Appointment
      if (!slots.isReserved(held)) continue
      if (clock.monotonic() <= until) start(held)
      else {
        this.#late.add(held)
        this.#asking.push(held)
      }
    }
    if (gone > 0) this.#due = this.#due.slice(gone)
    this.#ask()
  }

  /** Gives back those that had a slot, but no place, for so long. */
  giveBackOlder(fetchedBefore: number): void {
    const { slots, giveBack } = this.#options
    const old = this.#due.filter(({ held }) => held.fetchedAt < fetchedBefore)
    if (old.length === 0) return
    this.#due = this.#due.filter(appointment => !old.includes(appointment))
    for (const { held } of old) if (slots.isReserved(held)) giveBack(held)
  }

  #giveUp(batch: readonly Held[], error: unknown): void {
    const { clock, random } = this.#runtime
    const { slots, giveBack, onError } = this.#options
    onError(error)
    const until = clock.monotonic() + AFTER_TROUBLE_MS * (0.5 + random() / 2)
    for (const held of batch) {
      if (
        !slots.isReserved(held) ||
        [...this.#appointments, ...this.#due].some(appointment => appointment.held === held)
      )
        continue
      this.#close(held.lane, until)
      giveBack(held)
    }
  }
}
