// A breaker: what the fleet believes of one service, kept in the ledger. Closed: its jobs run. Open: they are held until
// it is looked at again. Half-open: a few real jobs find out. Isolated: a person holds them.
import type { Kind } from './failure.js'

export const BREAKER_STATES = ['closed', 'open', 'half_open', 'isolated'] as const

export type BreakerState = (typeof BREAKER_STATES)[number]

/** Times are milliseconds of the database's clock. */
export interface Breaker {
  readonly service: string
  readonly state: BreakerState
  readonly since: number
  /** When an open breaker lets the first jobs try; null in every other state. */
  readonly openUntil: number | null
  /** How often it opened without proving itself in between: the open time grows with it. */
  readonly openings: number
  /** How many jobs were let through since `permitsSince`: probes while half-open, released jobs after closing. */
  readonly permits: number
  readonly permitsSince: number
  readonly probesSucceeded: number
  readonly probesFailed: number
  /** Counts the moves; 0: never written down, closed since ever. */
  readonly version: number
  readonly reason: string
  readonly changedBy: string
  /** It only says what it would do. A person's isolation holds all the same. */
  readonly shadow: boolean
}

export interface BreakerSettings {
  readonly enabled: boolean
  /** Announces what it would do and holds nothing. */
  readonly shadow: boolean
  /** Opens after so many failures in a row, without a success anywhere in the fleet. */
  readonly consecutiveFailures: number
  /** Opens when so large a share of the window failed… */
  readonly failureRate: number
  readonly windowMs: number
  /** …of at least so many. */
  readonly minimumVolume: number
  /** Which kinds of failure speak of the service's health. */
  readonly kinds: readonly Kind[]
  /** How long it stays open the first time, how that grows, and up to where. */
  readonly openMs: number
  readonly openFactor: number
  readonly openMaxMs: number
  /** The open time is made longer or shorter by chance, by up to this share. */
  readonly jitter: number
  /** How many jobs, over the whole fleet, a half-open breaker lets through… */
  readonly probes: number
  /** …and how many of them must succeed. */
  readonly probesToClose: number
  /** Probes that nobody reported for so long are given out again: their worker may be gone. */
  readonly probeTimeoutMs: number
  /** After closing, the fleet starts with so many jobs a second… */
  readonly releasePerSecond: number
  /** …twice as many after each of these… */
  readonly releaseDoublingMs: number
  /** …and without a limit after this. 0: all at once. */
  readonly releaseMs: number
}

export interface BudgetSettings {
  readonly enabled: boolean
  /** Retries may be so large a share of first attempts… */
  readonly share: number
  /** …over this time… */
  readonly windowMs: number
  /** …and so many a second in any case. */
  readonly floorPerSecond: number
}

/** Settings of a service, as a user writes them: only what differs. */
export interface ServiceSettings {
  readonly breaker?: Partial<BreakerSettings>
  readonly budget?: Partial<BudgetSettings>
}

/** What the fleet saw of a service over its window. */
export interface ServiceCounts {
  readonly firstAttempts: number
  readonly retries: number
  readonly succeeded: number
  /** Only failures that speak of the service's health. */
  readonly failed: number
}

/** What one process saw of a service, with its failures in a row up to now. Times are the database's. */
export interface ServiceSight extends ServiceCounts {
  readonly run: number
  readonly runSince: number | null
  readonly lastSuccessAt: number | null
}
