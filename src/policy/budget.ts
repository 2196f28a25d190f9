// The retry budget of a service: retries may be a share of first attempts, with a floor. What is over it is not dropped
// but spread: each retry takes the next free place of a schedule with so many places a second, and waits for it. A place
// costs the same whoever takes it, so a burst of failures becomes an even stream instead of a second burst.
import type { BudgetSettings, ServiceCounts } from '../domain/breaker.js'

/** Where the schedule of one process stands: the time of its next free place. */
export interface BudgetState {
  readonly nextAt: number
}

export const EMPTY_BUDGET: BudgetState = { nextAt: 0 }

/** How many retries this process may make, over a window. */
export interface BudgetRate {
  readonly retries: number
  readonly windowMs: number
}

/** So large a part of a window's retries may come at once. */
const BURST = 0.1
/** No schedule is longer than this: what is behind it comes together, an hour late. */
const LONGEST_WAIT_MS = 3_600_000

/** The fleet's budget, and of it the share of this process: as large as its share of the attempts. */
export function budgetRate(
  settings: BudgetSettings,
  fleet: ServiceCounts,
  mine: Pick<ServiceCounts, 'firstAttempts' | 'retries'>,
  processes: number,
): BudgetRate {
  const { share, windowMs, floorPerSecond } = settings
  const budget = Math.max(share * fleet.firstAttempts, (floorPerSecond * windowMs) / 1_000)
  const attempts = fleet.firstAttempts + fleet.retries
  const part = attempts === 0 ? 1 : (mine.firstAttempts + mine.retries) / attempts
  // A process that has just begun has no share yet, but retries to make.
  return { retries: budget * Math.min(1, Math.max(part, 0.5 / Math.max(1, processes))), windowMs }
}

/** How long the next retry has to wait; 0: it is within the budget. */
export function budgetWaitMs({ nextAt }: BudgetState, { windowMs, retries }: BudgetRate, now: number): number {
  const burstMs = Math.max(windowMs * BURST, windowMs / retries)
  return Math.min(Math.max(0, nextAt - burstMs - now), LONGEST_WAIT_MS)
}

/** A retry took its place. */
export function budgetSpent({ nextAt }: BudgetState, { windowMs, retries }: BudgetRate, now: number): BudgetState {
  return { nextAt: Math.max(nextAt, now) + windowMs / retries }
}
