// What starts at the handlers say about a rate limit, over every window there is.

export interface Start {
  /** Job and tenant: what has a limit of its own. */
  readonly line: string
  readonly at: number
  readonly holds: number
}

interface Limit {
  readonly limit: number
  readonly intervalMs: number
  readonly burst: number
}

/** By how much the busiest window of any length is over burst + limit × length / interval; `times` in order. */
export function busiest(times: readonly number[], { limit, intervalMs, burst }: Limit): number {
  let over = Number.NEGATIVE_INFINITY
  for (let from = 0; from < times.length; from += 1) {
    for (let to = from; to < times.length; to += 1) {
      const lengthMs = (times[to] as number) - (times[from] as number)
      over = Math.max(over, to - from + 1 - (burst + (limit * lengthMs) / intervalMs))
    }
  }
  return over
}

/** The most starts in any window of this length. */
export function mostWithin(times: readonly number[], lengthMs: number): number {
  let most = 0
  let from = 0
  for (let to = 0; to < times.length; to += 1) {
    while ((times[to] as number) - (times[from] as number) >= lengthMs) from += 1
    most = Math.max(most, to - from + 1)
  }
  return most
}
