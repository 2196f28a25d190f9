// The port: what carries live jobs from those who enqueue to those who work. A transport carries; it decides nothing.
import type { SessionId } from '../domain/ids.js'
import type { ClaimedJob, Enqueued, NewJob } from '../domain/job.js'
import type { Settlement } from '../domain/settlement.js'
import type { Lane, LaneDemand } from '../ledger/claim.js'
import type { ForeignClient } from '../ledger/database.js'
import type { Standing } from '../ledger/standby.js'

export type { Lane, LaneDemand, Standing }

export interface Capabilities {
  /** Enqueue inside a database transaction of the caller's. */
  readonly transactional: boolean
  /** Tells a consumer that there may be work; without it, polling alone. */
  readonly wakes: boolean
  /** What is settled on one lane is written one after the other, without anybody waiting for the answers. */
  readonly settlesInOrder: boolean
}

export interface ConsumeOptions {
  readonly session: SessionId
  readonly lanes: readonly Lane[]
  /** Called when there may be work. May be called for nothing; is never the only way to learn of work. */
  readonly onWake: () => void
  /** Called when it can be woken, for the first time or again. */
  readonly onUp?: () => void
  /** Called with a job that was handed over as it was enqueued. It is claimed: to be run, or given back. */
  readonly onHanded?: (job: ClaimedJob) => void
}

export interface Consumer {
  /** Up to `limit` jobs that are due now, first in line first; [] when there is nothing. Never waits for work. */
  fetch(demand: readonly LaneDemand[], limit: number): Promise<ClaimedJob[]>
  /** All that was fetched and is not settled, including what a fetch took whose answer never came. */
  held(): Promise<ClaimedJob[]>
  /**
   * From now on, jobs of these lanes may be handed over as they are enqueued; of none: no more of them. False: not possible
   * now. Absent: never.
   */
  standBy?(lanes: readonly Lane[]): Promise<boolean>
  /** Says that it still stands by, and asks for what it has had for so long, in case it did not hear of it. */
  stand?(ms: number): Promise<Standing>
  close(): Promise<void>
}

export interface Transport {
  readonly capabilities: Capabilities
  /** Durable when it returns, or, with `tx`, when the caller commits. In the order of `jobs`. */
  publish(jobs: readonly NewJob[], tx?: ForeignClient): Promise<Enqueued[]>
  consume(options: ConsumeOptions): Consumer
  /** Fills in the payloads of fetched jobs that came without (`apart`), and tells of each as it comes. Absent: none does. */
  readPayloads?(jobs: readonly ClaimedJob[], onRead: (job: ClaimedJob) => void): Promise<void>
  /**
   * Writes down a batch of ends, each fenced by its lease. Returns those that were refused: their jobs belong to
   * someone else now. `lane`: which of the caller's concurrent settling lanes this is, from 0.
   */
  settle(batch: readonly Settlement[], by: { session: SessionId; lane: number }): Promise<Settlement[]>
  /** How many jobs are waiting in a queue. */
  depth(queue: string): Promise<number>
  close(): Promise<void>
}
