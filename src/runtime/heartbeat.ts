// Keeps a worker's session alive, and tells the worker in time when it cannot: at four fifths of the lease without a
// renewal it stops fetching and aborts, before anyone else may take its jobs over (invariant 3). A renewal that
// comes through late, before anyone took over, revives the same session.
import type { Clock, Random } from '../domain/clock.js'
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

  async start(): Promise<SessionId> {
    const session = await this.#open()
    this.#loop.start()
    return session
  }

  async stop(): Promise<void> {
    await this.#loop.stop()
    if (this.#session !== undefined) await endSession(this.#options.db, this.#session)
  }

  async #open(): Promise<SessionId> {
    const { db, session, clock, onOpen } = this.#options
    const askedAt = clock.monotonic()
    this.#session = await openSession(db, session)
    this.#renewedAt = askedAt
    this.#lapsed = false
    onOpen(this.#session)
    return this.#session
  }

  async #beat(): Promise<number> {
    const { clock, session, onError } = this.#options
    const pauseMs = session.leaseMs / RENEWALS_PER_LEASE
    const watch = this.#watch()
    try {
      if (this.#session === undefined) await this.#open()
      else if (clock.monotonic() - this.#renewedAt >= pauseMs * 0.5) await this.#renew(this.#session)
      return pauseMs
    } catch (error) {
      onError(error)
      this.#lapseIfLate()
      return Math.min(RETRY_MS, pauseMs)
    } finally {
      watch.cancel()
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
    this.#renewedAt = askedAt
    if (this.#lapsed) {
      this.#lapsed = false
      onOpen(id)
    }
    if (cancelled.length > 0) onCancel(cancelled)
  }

  /** A question that gets no answer must not outlast the lease unnoticed. */
  #watch() {
    const { clock, session } = this.#options
    const leftMs = this.#renewedAt + session.leaseMs * SAFE_SHARE - clock.monotonic()
    return clock.timer(Math.max(1, leftMs), () => this.#lapseIfLate(), { background: true })
  }

  #lapseIfLate(): void {
    if (!this.safe && this.#session !== undefined) this.#lapse('the lease could not be renewed in time')
  }

  #lapse(reason: string): void {
    if (this.#lapsed) return
    this.#lapsed = true
    this.#options.onLapse(reason)
  }
}
