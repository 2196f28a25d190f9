// Keeps what this process knows of services and what the fleet knows the same: tells the ledger what was seen here, reads
// the breakers, and moves those that have to move. One for each Redrive, shared by its workers and its calls in place;
// without a service nothing runs. All judgement is policy/breaker.
import type { ServiceSettings } from '../domain/breaker.js'
import type { Clock, Random } from '../domain/clock.js'
import type { Announce } from '../domain/event.js'
import { newJobId } from '../domain/ids.js'
import { breakers, moveBreaker, reportProbes, returnPermits, takePermits } from '../ledger/breaker.js'
import type { Database } from '../ledger/database.js'
import { addSightings, type SeenBySource, seenOf } from '../ledger/service-window.js'
import { type Evidence, evidenceOf, NO_EVIDENCE, step } from '../policy/breaker.js'
import type { PostgresTransport } from '../transport/transports/postgres.js'
import { type Loop, loop } from './loop.js'
import { ServiceState } from './service-state.js'

export interface ServicesOptions {
  readonly db: Database
  readonly transport: Pick<PostgresTransport, 'channel' | 'onNews'>
  readonly clock: Clock
  readonly random: Random
  readonly announce: Announce
}

/** Others learn of a move within a second, even where no NOTIFY reaches them. */
const EVERY_MS = 750
const SLICES_PER_WINDOW = 6
const SHORTEST_SLICE_MS = 250
const LONGEST_SLICE_MS = 10_000

export class Services {
  readonly #options: ServicesOptions
  /** What the code says of services. */
  readonly ofCode: Readonly<Record<string, ServiceSettings>>
  readonly #states = new Map<string, ServiceState>()
  /** Services whose breakers were read at least once. */
  readonly #read = new Set<string>()
  readonly #listeners = new Set<() => void>()
  readonly #source: string
  readonly #loop: Loop
  #stopHearing: (() => void) | undefined
  #closed = false

  constructor(options: ServicesOptions, ofCode: Readonly<Record<string, ServiceSettings>> = {}) {
    this.#options = options
    this.ofCode = ofCode
    this.#source = newJobId(options.clock)
    const onError = (error: unknown) => options.announce('error', () => ({ where: 'services', error }))
    this.#loop = loop({ ...options, step: () => this.#sync(), onError })
  }

  /** What is known of a service; undefined for a job that names none. */
  of(service: string | undefined): ServiceState | undefined {
    if (service === undefined) return undefined
    const known = this.#states.get(service)
    if (known) return known
    const state = new ServiceState(service, this.#options.clock, this.ofCode[service], () => this.#loop.nudge())
    this.#states.set(service, state)
    return state
  }

  /** Resolves when the breakers of these services are known as the fleet left them, and followed from then on. */
  async follow(services: readonly string[]): Promise<void> {
    for (const service of services) this.of(service)
    if (this.#closed || this.#states.size === 0) return
    if (services.some(service => !this.#read.has(service))) await this.#readAll()
    this.#stopHearing ??= this.#options.transport.onNews(service => {
      if (service === undefined || this.#states.has(service)) this.#loop.nudge()
    })
    this.#loop.start()
  }

  /** Calls `listener` when a breaker or its settings changed; returns how to stop that. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Looks now: a person may have changed something. */
  nudge(): void {
    this.#loop.nudge()
  }

  /** Permits to let jobs of a service through that is not free; exact over the fleet. */
  async take(state: ServiceState, most: number): Promise<number> {
    const allowed = state.allowance
    if (allowed < 1 || most < 1) return 0
    if (allowed === Number.POSITIVE_INFINITY) return most
    return takePermits(this.#options.db, state.breaker, most, allowed)
  }

  /** Permits for which there was no job. */
  giveBack(state: ServiceState, unused: number): void {
    state.unused += unused
    if (unused > 0) this.#loop.nudge()
  }

  async stop(): Promise<void> {
    this.#closed = true
    this.#stopHearing?.()
    await this.#loop.stop()
    // What was seen in the last second may be what the others need to know.
    if (this.#states.size > 0) await this.#tell().catch(() => {})
  }

  async #sync(): Promise<number> {
    const told = await this.#tell()
    await this.#readAll()
    const evidence = told.length > 0 ? await this.#evidence(told) : new Map<string, Evidence>()
    let moved = false
    for (const state of this.#states.values()) {
      if (await this.#move(state, evidence.get(state.name) ?? NO_EVIDENCE)) moved = true
    }
    if (moved) await this.#readAll()
    return this.#untilNextLook()
  }

  /** Tells the ledger what was seen here; returns the services there was something to say of. */
  async #tell(): Promise<ServiceState[]> {
    const { db } = this.#options
    for (const state of this.#states.values()) {
      const { probes, unused, breaker } = state
      if (unused > 0) {
        state.unused = 0
        await returnPermits(db, breaker, unused)
      }
      if (probes.succeeded + probes.failed > 0) {
        await reportProbes(db, { service: state.name, openings: probes.openings }, probes)
        state.probes = {
          openings: state.probes.openings,
          succeeded: state.probes.succeeded - probes.succeeded,
          failed: state.probes.failed - probes.failed,
        }
      }
    }
    const news = [...this.#states.values()].filter(({ seen }) => seen.firstAttempts + seen.retries > 0)
    if (news.length === 0) return news
    const sightings = news.map(state => ({
      service: state.name,
      sliceMs: sliceMs(state.settings.breaker.windowMs),
      ...state.seen,
      run: state.runToTell,
      // A run begins anew at each move: by a clock that is read from afar it must not seem to be older.
      runSince: state.run > 0 ? Math.max(state.timeOf(state.runSince), state.breaker.since) : null,
      lastSuccessAt: state.lastSuccessAt === undefined ? null : state.timeOf(state.lastSuccessAt),
    }))
    await addSightings(db, this.#source, sightings)
    for (const [index, { seen }] of news.entries()) {
      const said = sightings[index] as (typeof sightings)[number]
      seen.firstAttempts -= said.firstAttempts
      seen.retries -= said.retries
      seen.succeeded -= said.succeeded
      seen.failed -= said.failed
    }
    return news
  }

  async #readAll(): Promise<void> {
    const { db, clock, announce } = this.#options
    const states = [...this.#states.values()]
    const askedAt = clock.monotonic()
    const read = await breakers(
      db,
      states.map(({ name }) => name),
    )
    const zero = read.readAt - (askedAt + clock.monotonic()) / 2
    const rows = new Map(read.breakers.map(row => [row.service, row]))
    let changed = false
    for (const state of states) {
      const row = rows.get(state.name)
      if (state.learn(row, zero)) changed = true
      try {
        if (state.learnSettings(row?.settings ?? null)) changed = true
      } catch (error) {
        announce('error', () => ({ where: `reading the settings of service ${state.name}`, error }))
      }
      this.#read.add(state.name)
    }
    if (changed) for (const listener of this.#listeners) listener()
  }

  async #evidence(states: readonly ServiceState[]): Promise<Map<string, Evidence>> {
    const asked = states.map(({ name, settings, breaker }) => ({
      service: name,
      healthMs: settings.breaker.windowMs,
      attemptsMs: settings.budget.windowMs,
      since: breaker.since,
    }))
    const all = await seenOf(this.#options.db, asked)
    return new Map(
      states.map(state => {
        const seen = all.filter(({ service }) => service === state.name)
        const mine = seen.find(({ source }) => source === this.#source)
        state.learnCounts({ fleet: sum(seen), mine: mine ?? sum([]), processes: seen.length })
        return [state.name, evidenceOf(seen, state.breaker.since)]
      }),
    )
  }

  /** True: it was tried; whoever was first, the ledger now says something else. */
  async #move(state: ServiceState, evidence: Evidence): Promise<boolean> {
    const { db, transport, random, announce } = this.#options
    const { breaker, settings } = state
    const move = step(breaker, evidence, settings.breaker, state.now, random)
    if (!move) return false
    const { shadow } = settings.breaker
    const change = { ...move, service: state.name, fromVersion: breaker.version, shadow, changedBy: 'the fleet' }
    if (await moveBreaker(db, change, transport.channel)) {
      const { reason, openMs } = move
      const [from, to] = [breaker.state, move.state]
      if (from !== to) announce('breaker.changed', () => ({ service: state.name, from, to, reason, openMs, shadow }))
    }
    return true
  }

  #untilNextLook(): number {
    let waitMs = EVERY_MS
    for (const { breaker, now } of this.#states.values()) {
      if (breaker.openUntil !== null) waitMs = Math.min(waitMs, breaker.openUntil - now)
    }
    return Math.max(1, waitMs)
  }
}

const sliceMs = (windowMs: number): number =>
  Math.round(Math.min(Math.max(windowMs / SLICES_PER_WINDOW, SHORTEST_SLICE_MS), LONGEST_SLICE_MS))

function sum(seen: readonly SeenBySource[]) {
  const total = { firstAttempts: 0, retries: 0, succeeded: 0, failed: 0 }
  for (const { firstAttempts, retries, succeeded, failed } of seen) {
    total.firstAttempts += firstAttempts
    total.retries += retries
    total.succeeded += succeeded
    total.failed += failed
  }
  return total
}
