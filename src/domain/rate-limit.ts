// A rate limit: so many starts per interval, with a burst, for each key. What a user writes, and what is kept of it.

export interface RateLimitSettings {
  /** So many starts… */
  readonly limit: number
  /** …in this time, evenly spaced. */
  readonly intervalMs: number
  /** So many may start at once after a quiet time; 1: none but the next. */
  readonly burst: number
}

/** The slots of a schedule: how far apart they are, for how long those that nobody took are saved… */
export interface Pace {
  readonly spacingMs: number
  readonly savedMs: number
  /** …and by how much a start may be later than its slot. One that is later does not take place. */
  readonly lateMs: number
}

/** When a start may take place, in milliseconds of one clock. */
export interface Slot {
  readonly at: number
  readonly until: number
}
