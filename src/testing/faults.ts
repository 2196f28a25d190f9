// Faults on demand: wraps a function so that chosen calls fail, hang or are slow, as the outside world would.
import { type Clock, sleep, systemClock } from '../domain/clock.js'

export interface FaultPlan {
  /** What the calls do, in order; after the last one every call goes through. */
  readonly calls: readonly (
    | 'ok'
    /** Throws this. */
    | { readonly fail: Error }
    /** Waits, then goes through. */
    | { readonly slowMs: number }
    /** Never returns. */
    | 'hang'
  )[]
  readonly clock?: Clock
}

export function faults<Args extends unknown[], Result>(
  call: (...args: Args) => Promise<Result> | Result,
  { calls, clock = systemClock }: FaultPlan,
): ((...args: Args) => Promise<Result>) & { readonly count: number } {
  let count = 0
  const faulty = async (...args: Args): Promise<Result> => {
    const plan = calls[count] ?? 'ok'
    count += 1
    if (plan === 'hang') return new Promise(() => {})
    if (typeof plan === 'object' && 'fail' in plan) throw plan.fail
    if (typeof plan === 'object') await sleep(clock, plan.slowMs)
    return call(...args)
  }
  return Object.defineProperty(faulty, 'count', { get: () => count }) as typeof faulty & { readonly count: number }
}
