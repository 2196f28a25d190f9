// Slots of a rate limit that is far from being reached, taken from the ledger before there are jobs for them: such a job
// then starts without a question of its own, like one without a limit. Each slot is still given once over the whole fleet,
// and is forgotten after a moment, so no limit is ever passed; one that has plenty loses a little of what it saved.
import type { RateAnswer } from '../ledger/rate-limit.js'

/** A limit has plenty if it has saved so many times as many slots as are taken from it. */
const PLENTY = 4
/** Fewer jobs than this between two questions can ask themselves. */
const WORTH_IT = 20
/** What was needed since the last question, and three times as much again. */
const AHEAD = 4
const MOST_AHEAD = 4_000
const MOST_KEYS = 1_000

/** Slots in a row, all of them in the past. Times are of our stopwatch. */
interface Row {
  /** Until when the next one may be used… */
  until: number
  readonly spacingMs: number
  left: number
  /** …until when any of them, and when it is time to ask for more. */
  readonly gone: number
  readonly low: number
}

interface Key {
  readonly rows: Row[]
  /** Jobs that came since the ledger was last asked. */
  came: number
  /** So many slots the schedule had saved when it last answered, and its oldest could be used for so long then. */
  readonly saved: number
  readonly oldestMs: number
  readonly spacingMs: number
  readonly askedAt: number
  /** It was noted that there will soon be none left. */
  low: boolean
}

export class SpareSlots {
  readonly #keepMs: number
  readonly #keys = new Map<string, Key>()
  /** The one that was asked for last: often there is only one. */
  #last: { readonly key: string; readonly known: Key } | undefined
  /** Keys that will soon have none left. */
  #low: string[] = []

  /** `keepMs`: for so long a slot may be kept here. */
  constructor(keepMs: number) {
    this.#keepMs = keepMs
  }

  /** There were some lately: a job of this key need not ask before it is about to start. */
  has(key: string | undefined): boolean {
    return key !== undefined && (this.#find(key)?.rows.length ?? 0) > 0
  }

  /** Takes one, for a job that starts now; false: it has to ask. */
  take(key: string, now: number): boolean {
    const known = this.#find(key)
    if (!known) return false
    const { rows } = known
    known.came += 1
    for (let row = rows[0]; row; row = rows[0]) {
      skipPast(row, now)
      if (row.left > 0 && row.gone > now) {
        row.left -= 1
        row.until += row.spacingMs
        if (!known.low && rows.length === 1 && (row.left <= known.came || now > row.low)) this.#noteLow(key, known)
        return true
      }
      rows.shift()
    }
    return false
  }

  #noteLow(key: string, known: Key): void {
    known.low = true
    this.#low.push(key)
  }

  /** Which keys are worth asking for although no job of theirs waits. */
  low(now: number): string[] {
    if (this.#low.length === 0) return this.#low
    const low = this.#low.filter(key => this.wanted(key, 0, now) > 0)
    this.#low = []
    return low
  }

  /**
   * How many to ask for beyond those for jobs that `wait`; 0 for a limit that might be reached. The ledger gives the oldest
   * first, and those that could not be kept for long are asked for to be passed over.
   */
  wanted(key: string, wait: number, now: number): number {
    const known = this.#keys.get(key)
    if (!known || Math.max(known.came, wait) < WORTH_IT) return 0
    const wanted = Math.min(MOST_AHEAD, Math.max(known.came, wait) * AHEAD)
    const oldestMs = Math.max(0, known.oldestMs - (now - known.askedAt))
    const passedOver = Math.max(0, Math.ceil((this.#keepMs - oldestMs) / known.spacingMs) - wait)
    return known.saved >= (wait + wanted + passedOver) * PLENTY ? wanted + passedOver : 0
  }

  /** The ledger answered. The first `used` slots are for jobs that waited; of the others those of the past are spare. */
  learn(key: string, answer: RateAnswer, used: number, offset: number, now: number): void {
    const { firstAt, spacingMs, lateMs, given, nextAt } = answer
    const past = Math.min(given, Math.floor((answer.now - firstAt) / spacingMs) + 1)
    const rows = this.#keys.get(key)?.rows ?? []
    if (past > used) {
      const until = firstAt + used * spacingMs + lateMs + offset
      const row = { until, spacingMs, left: past - used, gone: now + this.#keepMs, low: now + this.#keepMs / 2 }
      skipPast(row, now + this.#keepMs / 2)
      rows.push(row)
    }
    const saved = Math.max(0, Math.floor((answer.now - nextAt) / spacingMs))
    const oldestMs = nextAt + lateMs - answer.now
    this.#last = undefined
    this.#keys.set(key, { rows, came: 0, saved, oldestMs, spacingMs, askedAt: now, low: false })
    if (this.#keys.size > MOST_KEYS) this.#sweep(now)
  }

  #find(key: string): Key | undefined {
    if (this.#last?.key === key) return this.#last.known
    const known = this.#keys.get(key)
    if (known) this.#last = { key, known }
    return known
  }

  #sweep(now: number): void {
    for (const [key, { askedAt }] of this.#keys) if (askedAt + this.#keepMs <= now) this.#keys.delete(key)
  }
}

/** By arithmetic: there may be many. */
function skipPast(row: Row, now: number): void {
  if (row.until > now) return
  const gone = Math.min(row.left, Math.ceil((now - row.until) / row.spacingMs) + 1)
  row.left -= gone
  row.until += gone * row.spacingMs
}
