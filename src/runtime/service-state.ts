// What one process knows of one service: the breaker as it was last read, and what was seen here since. Costs a few
// additions for each job; the ledger hears of it from breaker-sync.
import type { Breaker, ServiceCounts, ServiceSettings } from '../domain/breaker.js'
import type { Clock } from '../domain/clock.js'
import type { Decision } from '../domain/decision.js'
import type { JobId, Lease } from '../domain/ids.js'
import type { Json } from '../domain/json.js'
import type { Outcome } from '../domain/outcome.js'
import { allowance, type BreakerView, type Health, healthOf, viewOf } from '../policy/breaker.js'
import { type BudgetRate, budgetRate, budgetSpent, budgetWaitMs, EMPTY_BUDGET } from '../policy/budget.js'
import { decide, type Situation } from '../policy/decide.js'
import { type EffectiveService, effectiveService, parseService } from '../policy/service-settings.js'

const NOTHING_SEEN: ServiceCounts = { firstAttempts: 0, retries: 0, succeeded: 0, failed: 0 }

/** An attempt that was let through by a permit: its end is heard by the breaker of that opening. */
export interface Permit {
  readonly version: number
  readonly openings: number
  readonly probe: boolean
}

/** What the whole fleet saw, what of it this process did, and how many processes saw something. */
export interface FleetCounts {
  readonly fleet: ServiceCounts
  readonly mine: ServiceCounts
  readonly processes: number
}

export class ServiceState {
  readonly name: string
  readonly #clock: Clock
  readonly #ofCode: ServiceSettings | undefined
  /** So many failures in a row are worth a word with the others at once. */
  readonly #onAlarm: () => void
  settings: EffectiveService
  breaker: Breaker
  /** What was seen here since the others were last told. */
  seen: { -readonly [Key in keyof ServiceCounts]: number } = { ...NOTHING_SEEN }
  run = 0
  /** Milliseconds of the process's stopwatch, as all times in here. */
  runSince = 0
  lastSuccessAt: number | undefined
  /** Ends of probes that the ledger has not heard of. */
  probes = { openings: 0, succeeded: 0, failed: 0 }
  /** Permits to give back, of the breaker's present version. */
  unused = 0
  #runBegunBy: JobId | undefined
  #runHasOthers = false
  #permits = new Map<Lease, Permit>()
  #budget = EMPTY_BUDGET
  #counts: FleetCounts = { fleet: NOTHING_SEEN, mine: NOTHING_SEEN, processes: 1 }
  #budgetRate: BudgetRate
  /** The database's time when the stopwatch stood at 0. */
  #zero = 0
  #settingsText = 'null'

  constructor(name: string, clock: Clock, ofCode: ServiceSettings | undefined, onAlarm: () => void) {
    this.name = name
    this.#clock = clock
    this.#ofCode = ofCode
    this.#onAlarm = onAlarm
    this.settings = effectiveService(ofCode)
    this.breaker = neverMoved(name)
    this.#budgetRate = budgetRate(this.settings.budget, NOTHING_SEEN, NOTHING_SEEN, 1)
  }

  /** The database's time, carried forward by our stopwatch (invariant 5). */
  get now(): number {
    return this.#zero + this.#clock.monotonic()
  }

  /** The same for a moment of the stopwatch. */
  timeOf(at: number): number {
    return this.#zero + at
  }

  /** Its failures in a row, as the others are told of them: one job that fails again and again is one voice. */
  get runToTell(): number {
    return this.#runHasOthers ? this.run : Math.min(1, this.run)
  }

  /** How many jobs may have been let through by now. */
  get allowance(): number {
    return allowance(this.breaker, this.settings.breaker, this.now)
  }

  /** Its jobs may be claimed without asking. */
  get free(): boolean {
    const { state, openings } = this.breaker
    return (state === 'closed' && openings === 0) || this.allowance === Number.POSITIVE_INFINITY
  }

  /** Takes over what the ledger says; true if it moved. `zero`: the database's time at stopwatch 0. */
  learn(breaker: Breaker | undefined, zero: number): boolean {
    this.#zero = zero
    // Of two answers the one asked for first may come last.
    if (!breaker || breaker.version < this.breaker.version) return false
    const moved = breaker.version !== this.breaker.version
    this.breaker = breaker
    if (moved) {
      // What happened before says nothing of what is believed now.
      this.#endRun()
      this.unused = 0
    }
    return moved
  }

  /** Follows what a person set; true if it is new. What does not parse changes nothing and throws, once. */
  learnSettings(settings: Json): boolean {
    const text = JSON.stringify(settings)
    if (text === this.#settingsText) return false
    this.#settingsText = text
    const set = settings === null ? undefined : parseService(settings, `settings of service ${this.name}`)
    this.settings = effectiveService(this.#ofCode, set)
    this.learnCounts(this.#counts)
    return true
  }

  /** What the fleet and this process saw over the budget's window. */
  learnCounts(counts: FleetCounts): void {
    this.#counts = counts
    this.#budgetRate = budgetRate(this.settings.budget, counts.fleet, counts.mine, counts.processes)
  }

  /** These claims were let through by permits. */
  letThrough(leases: readonly Lease[]): void {
    const { version, openings, state } = this.breaker
    for (const lease of leases) this.#permits.set(lease, { version, openings, probe: state === 'half_open' })
  }

  /** Notes how an attempt ended, and when by the stopwatch, and decides what follows with what is known of the service. */
  decide(situation: Situation, id: JobId, lease?: Lease, at = this.#clock.monotonic()): Decision {
    const { outcome, job } = situation
    // Nearly every job: nothing failed lately, nobody tries the service out.
    if (outcome.type === 'succeeded' && this.run === 0 && this.#permits.size === 0) {
      this.#noteSuccess(job.attempt, at)
      return decide(situation)
    }
    const health = this.#note(outcome, job.attempt, at, id, lease)
    if (outcome.type !== 'failed' && outcome.type !== 'timed_out') return decide(situation)
    const budgeted = this.settings.budget.enabled
    const now = this.#clock.monotonic()
    const decision = decide({
      ...situation,
      breaker: health === 'bad' ? this.#view(id) : undefined,
      budget: budgeted ? { waitMs: budgetWaitMs(this.#budget, this.#budgetRate, now) } : undefined,
    })
    const retried = decision.type === 'retry' || (decision.type === 'hold' && decision.spent)
    if (budgeted && retried) this.#budget = budgetSpent(this.#budget, this.#budgetRate, now)
    return decision
  }

  #view(id: JobId): BreakerView {
    const suspected = this.#runHasOthers || (this.run > 0 && this.#runBegunBy !== id)
    return viewOf(this.breaker, this.settings.breaker, this.now, suspected)
  }

  #note(outcome: Outcome, attempt: number, at: number, id: JobId, lease: Lease | undefined): Health {
    const { kinds, consecutiveFailures } = this.settings.breaker
    const health = healthOf(outcome, this.name, kinds)
    const permit = this.#permits.size > 0 && lease !== undefined ? this.#permits.get(lease) : undefined
    if (permit) this.#spend(permit, health, lease as Lease)
    if (outcome.type === 'interrupted') return health
    if (health === 'good') {
      if (this.run > 0) this.#endRun()
      this.#noteSuccess(attempt, at)
      return health
    }
    this.#count(attempt)
    if (health === 'bad') {
      this.seen.failed += 1
      this.#fail(id)
      if (this.runToTell >= consecutiveFailures && this.breaker.state === 'closed') this.#onAlarm()
    }
    return health
  }

  #count(attempt: number): void {
    if (attempt === 1) this.seen.firstAttempts += 1
    else this.seen.retries += 1
  }

  #noteSuccess(attempt: number, at: number): void {
    this.#count(attempt)
    this.seen.succeeded += 1
    this.lastSuccessAt = at
  }

  #fail(id: JobId): void {
    if (this.run === 0) {
      this.#runBegunBy = id
      this.runSince = this.#clock.monotonic()
    } else if (id !== this.#runBegunBy) {
      this.#runHasOthers = true
    }
    this.run += 1
  }

  #endRun(): void {
    this.run = 0
    this.#runHasOthers = false
  }

  #spend(permit: Permit, health: Health, lease: Lease): void {
    this.#permits.delete(lease)
    if (health === 'nothing') {
      if (permit.version === this.breaker.version) this.unused += 1
    } else if (permit.probe) {
      if (this.probes.openings !== permit.openings) this.probes = { openings: permit.openings, succeeded: 0, failed: 0 }
      this.probes[health === 'good' ? 'succeeded' : 'failed'] += 1
      this.#onAlarm()
    }
  }
}

const neverMoved = (service: string): Breaker => ({
  service,
  state: 'closed',
  since: 0,
  openUntil: null,
  openings: 0,
  permits: 0,
  permitsSince: 0,
  probesSucceeded: 0,
  probesFailed: 0,
  version: 0,
  reason: 'nothing has happened yet',
  changedBy: '',
  shadow: false,
})
