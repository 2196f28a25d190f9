// What a transport brings to the suite besides itself: the parts of a worker's and an operator's life that the port
// leaves to others. Tests look at behaviour only; nothing here says where a job is stored.
import type { JobId, SessionId } from '../../../src/domain/ids.js'
import type { State } from '../../../src/domain/lifecycle.js'
import type { ForeignClient } from '../../../src/ledger/database.js'
import type { Transport } from '../../../src/transport/transport.js'

/** What is known of a job, wherever it is. */
export interface Seen {
  readonly state: State
  readonly attempt: number
  readonly snoozes: number
  readonly holds: number
  readonly interruptions: number
  readonly lost: number
  readonly runAt?: Date
}

export interface TransportHarness {
  readonly transport: Transport
  /** The same jobs through a transport of its own, as another process has; `deaf`: it hears of no other process. */
  another(options?: { deaf?: boolean }): Promise<Transport>
  /** A new worker's right to fetch. */
  openSession(): Promise<SessionId>
  /** The worker stops as it should. */
  endSession(session: SessionId): Promise<void>
  /** The worker dies, without a word: its session lapses. */
  crash(session: SessionId): Promise<void>
  /** What recovery does for the jobs of dead workers: each is lost, and goes back into the line at once. */
  rescue(): Promise<void>
  /** Moves the transport's clock on. */
  advance(ms: number): Promise<void>
  /** The time by that clock. */
  now(): Date
  /** Makes claimable what is due. */
  promote(): Promise<void>
  pause(queue: string): Promise<void>
  resume(queue: string): Promise<void>
  state(id: JobId): Promise<Seen | undefined>
  /** Runs `work` in a transaction of the caller's own: committed when it returns, rolled back when it throws. */
  transaction<T>(work: (tx: ForeignClient) => Promise<T>): Promise<T>
  close(): Promise<void>
}
