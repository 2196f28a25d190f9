// Keeps a worker's session alive, and tells the worker in time when it cannot: at four fifths of the lease without a
// renewal it stops fetching and aborts, before anyone else may take its jobs over (invariant 3). A renewal that
// comes through late, before anyone took over, revives the same session.
import type { Clock, Random, Timer } from '../domain/clock.js'
import type { JobId, SessionId } from '../domain/ids.js'
import type { Database } from '../ledger/database.js'
import { endSession, type NewSession, openSession, renewSession } from '../ledger/session.js'
import { type Loop, loop } from './loop.js'

export interface HeartbeatOptions {
  readonly db: Database
  readonly session: NewSession
  readonly clock: Clock
  readonly random: Random
  /** The lease is (as good as) gone: stop fetching, abort everything. */
  readonly onLapse: (reason: string) => void
  /** There is a lease again: a new session, or the old one revived. */
  readonly onOpen: (session: SessionId) => void
  readonly onCancel: (jobs: readonly { id: JobId; reason: string }[]) => void
  readonly onError: (error: unknown) => void
}

const RENEWALS_PER_LEASE = 3
const SAFE_SHARE = 0.8
/** While renewing fails, it is tried this often. */
const RETRY_MS = 500

export class Heartbeat {
  readonly #options: HeartbeatOptions
  readonly #loop: Loop
  #session: SessionId | undefined
  #renewedAt = 0
  #lapsed = false
  #watch: Timer | undefined

  constructor(options: HeartbeatOptions) {
    this.#options = options
    this.#loop = loop({ ...options, step: () => this.#beat() })
  }

  get session(): SessionId | undefined {
    return this.#session
  }

  /** False: the lease may run out any moment; nothing new must be started on it. */
  get safe(): boolean {
    const { clock, session } = this.#options
    return this.#session !== undefined && clock.monotonic() - this.#renewedAt < session.leaseMs * SAFE_SHARE
  }

  /** Opens the session, unless it is open. */
  async start(): Promise<SessionId> {
    const session = this.#session ?? (await this.#open())
    this.#loop.start()
    return session
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    this.#watch?.cancel()
    if (this.#session !== undefined) await endSession(this.#options.db, this.#session)
  }

  async #open(): Promise<SessionId> {
    const { db, session, clock, onOpen } = this.#options
    const askedAt = clock.monotonic()
    this.#session = await openSession(db, session)
    this.#leasedFrom(askedAt)
    this.#lapsed = false
    onOpen(this.#session)
    return this.#session
  }

  async #beat(): Promise<number> {
    const { clock, session, onError } = this.#options
    const pauseMs = session.leaseMs / RENEWALS_PER_LEASE
    try {
      if (this.#session === undefined) await this.#open()
      else if (clock.monotonic() - this.#renewedAt >= pauseMs * 0.5) await this.#renew(this.#session)
      return pauseMs
    } catch (error) {
      onError(error)
      return Math.min(RETRY_MS, pauseMs)
    }
  }

  async #renew(id: SessionId): Promise<void> {
    const { db, session, clock, onOpen, onCancel } = this.#options
    // Counted from before the question: the database's answer may have been long on its way.
    const askedAt = clock.monotonic()
    const { renewed, cancelled } = await renewSession(db, id, session.leaseMs)
    if (!renewed) {
      this.#session = undefined
      this.#lapse('the session was ended by another process')
      await this.#open()
      return
    }
    this.#leasedFrom(askedAt)
    if (this.#lapsed) {
      this.#lapsed = false
      onOpen(id)
    }
    if (cancelled.length > 0) onCancel(cancelled)
  }

  /** Whatever the beat is doing then, failing or waiting for an answer: the lease must not run out unnoticed. */
  #leasedFrom(askedAt: number): void {
    this.#renewedAt = askedAt
    this.#watchLease()
  }

  #watchLease(): void {
    const { clock, session } = this.#options
    const leftMs = this.#renewedAt + session.leaseMs * SAFE_SHARE - clock.monotonic()
    const look = () => {
      if (this.#session === undefined) return
      if (this.safe) this.#watchLease()
      else this.#lapse('the lease could not be renewed in time')
    }
    this.#watch?.cancel()
    this.#watch = clock.timer(Math.max(1, leftMs), look, { background: true })
  }

  #lapse(reason: string): void {
    if (this.#lapsed) return
    this.#lapsed = true
    this.#options.onLapse(reason)
  }
}
