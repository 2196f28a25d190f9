// Large payloads do not come with their claims: they are read when handlers are about to get to them, in the order of the line, and each job can start
// as its own comes. So the first handlers begin while the rest is on its way, and a worker that holds a thousand jobs does not hold a thousand
// large payloads.
import { type Clock, type Random, sleep } from '../domain/clock.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Held } from './slots.js'

export interface PayloadReaderOptions {
  readonly clock: Clock
  readonly random: Random
  /** Fills them in, and tells of each as it comes. */
  readonly read: (jobs: readonly ClaimedJob[], onRead: (job: ClaimedJob) => void) => Promise<void>
  /** Called with what came in one turn. */
  readonly onRead: (held: readonly Held[]) => void
  readonly onError: (error: unknown) => void
}

/** The next question is there when the one before is answered. */
const MOST_QUESTIONS = 2
/** What is worth a question, in characters ... */
const WORTH_ASKING = 2_000_000
/** ... and in jobs: as long as it is not known how large theirs are, and then. */
const FIRST_JOBS = 20
const MOST_JOBS = 500
/** With so many characters ready to run, no more are asked for. */
const MOST_READY = 1_000_000
const WEIGHT = 0.1
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

export class PayloadReader {
  readonly #options: PayloadReaderOptions
  /** In the order of the line. */
  readonly #unread = new Set<Held>()
  /** Those that were asked for. */
  readonly #asked = new Map<ClaimedJob, Held>()
  /** What was read and waits in line, with its length. */
  readonly #ready = new Map<Held, number>()
  readonly #closed = new AbortController()
  /** What came in this turn. */
  #came: Held[] = []
  #readyChars = 0
  #questions = 0
  #usualChars = 0

  constructor(options: PayloadReaderOptions) {
    this.#options = options
  }

  /** These have no payload yet. */
  add(some: readonly Held[]): void {
    for (const held of some) this.#unread.add(held)
    this.#ask()
  }

  /** It has started, or does not start here. */
  left(held: Held): void {
    this.#unread.delete(held)
    this.#asked.delete(held.job)
    const chars = this.#ready.get(held)
    if (chars === undefined) return
    this.#ready.delete(held)
    this.#readyChars -= chars
    this.#ask()
  }

  close(): void {
    this.#closed.abort()
  }

  #ask(): void {
    while (this.#unread.size > 0 && this.#questions < MOST_QUESTIONS && this.#readyChars < MOST_READY) {
      void this.#read(this.#next())
    }
  }

  #next(): ClaimedJob[] {
    const most = this.#usualChars === 0 ? FIRST_JOBS : Math.min(MOST_JOBS, Math.ceil(WORTH_ASKING / this.#usualChars))
    const next: ClaimedJob[] = []
    for (const held of this.#unread) {
      if (next.length === most) break
      next.push(held.job)
      this.#unread.delete(held)
      this.#asked.set(held.job, held)
    }
    return next
  }

  /** Tries until all have come, or nobody waits for them any more. */
  async #read(jobs: readonly ClaimedJob[]): Promise<void> {
    const { clock, random, read, onError } = this.#options
    this.#questions += 1
    for (let failures = 0; ; failures += 1) {
      const wanted = this.#closed.signal.aborted ? [] : jobs.filter(job => this.#asked.has(job))
      if (wanted.length === 0) break
      try {
        await read(wanted, this.#hasCome)
      } catch (error) {
        onError(error)
        const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
        await sleep(clock, pauseMs * (0.5 + random() / 2), this.#closed.signal)
      }
    }
    this.#questions -= 1
    this.#ask()
  }

  readonly #hasCome = (job: ClaimedJob): void => {
    const held = this.#asked.get(job)
    if (!held) return
    this.#asked.delete(job)
    const chars = job.payloadText.length
    this.#usualChars = this.#usualChars === 0 ? chars : this.#usualChars + (chars - this.#usualChars) * WEIGHT
    // One with a rate limit has a place of its own, perhaps for long: others are not to wait for it.
    if (!held.definition.rateLimit) {
      this.#ready.set(held, chars)
      this.#readyChars += chars
    }
    if (this.#came.push(held) === 1) void TURN.then(this.#tell)
  }

  readonly #tell = (): void => {
    const came = this.#came
    this.#came = []
    this.#options.onRead(came)
  }
}

/** When what is under way has returned. */
const TURN = Promise.resolve()
