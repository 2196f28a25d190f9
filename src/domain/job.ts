// A job: one piece of work. What handlers and classifiers see of it, and what is stored about it.
import type { JobId, Lease } from './ids.js'

export const PRIORITY = { lowest: 0, default: 5, highest: 10 } as const

/** Whom a job is for and what it is called: known from enqueue on, never changed by running. */
export interface JobIdentity {
  readonly id: JobId
  readonly queue: string
  readonly name: string
  readonly priority: number
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly service?: string
  readonly uniqueKey?: string
}

/** How far a job has come. Attempts are counted at claim; the other counters never spend one (invariant 4). */
export interface JobCounters {
  /** The running attempt's number, from 1. */
  readonly attempt: number
  readonly snoozes: number
  readonly holds: number
  readonly interruptions: number
  /** Times its worker died. */
  readonly lost: number
  /** Times it came back from the dead; 0 for a job that never died. */
  readonly redrives: number
}

/** A job as a decision needs it. Times are milliseconds of the database's clock. */
export interface Job extends JobIdentity, JobCounters {
  readonly createdAt: number
  /** Start of the first attempt of this life; the total limit counts from here. */
  readonly firstClaimedAt: number
  /** What the enqueuer asked for; a policy set at run time beats it. */
  readonly maxAttempts?: number
}

/** A job handed to a worker: claimed, and fenced by its lease. */
export interface ClaimedJob extends Job {
  readonly lease: Lease
  /** Where its transport finds it again; only the transport can read it. */
  readonly receipt?: string
  /** Its place in line, for the transport as well. */
  readonly line?: string
  /** As stored: undecoded, so that one bad payload fails alone (pitfall 20). */
  readonly payloadText: string
  /** True: its payload lies apart and is not read yet, so that `payloadText` is empty. Nobody may run it before. */
  readonly apart?: boolean
  readonly claimedAt: number
  /** When it became claimable; the wait is measured from here. */
  readonly waitingSince: number
  /** Which rate limit and key it was held for, if it was; it has been let go by now. */
  readonly heldBy?: string
  /** Set when its last claim ended with a lost worker: its start is then recorded before it runs. */
  readonly suspect: boolean
  /** The span it was enqueued in. */
  readonly trace?: string
  /** A broker carries it: the right to run it is the broker's to give, and does not hang on the session's lease. */
  readonly carried?: true
}

/** A job that is about to be enqueued. */
export interface NewJob extends JobIdentity {
  readonly payloadText: string
  /** Run after so long, by the database's clock. */
  readonly delayMs?: number
  /** Run at this time, ISO text; beats `delayMs`. */
  readonly runAt?: string
  readonly maxAttempts?: number
  /** The span it is enqueued in, as W3C `traceparent`; only if somebody records spans. */
  readonly trace?: string
}

export interface Enqueued {
  readonly id: JobId
  /** True: a live job with the same unique key was there already, and `id` is that one's. */
  readonly deduplicated: boolean
}
