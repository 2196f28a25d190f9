// Large payloads do not come with their claims: they are read when handlers are about to get to them, in the order of the line, and each job can start
// as its own comes. So the first handlers begin while the rest is on its way, and a worker that holds a thousand jobs does not hold a thousand
// large payloads.
import type { Clock, Random, Timer } from '../domain/clock.js'
import type { ClaimedJob } from '../domain/job.js'
import type { AnyJobDefinition } from './definition.js'
import type { Held } from './slots.js'

export interface PayloadReaderOptions {
  readonly clock: Clock
  readonly random: Random
  /** Fills them in, and tells of each as it comes. */
  readonly read: (jobs: readonly ClaimedJob[], onRead: (job: ClaimedJob) => void) => Promise<void>
  /** False: it has a place of its own, and may wait there for long. */
  readonly isInLine: (held: Held) => boolean
  /** Called with what came in one turn. */
  readonly onRead: (held: readonly Held[]) => void
  /** Called with what did not come, to be given back. */
  readonly onFailed: (held: readonly Held[], error: unknown) => void
}

/** The next question is there when the one before is answered. */
const MOST_QUESTIONS = 2
/** What is worth a question, in characters and in jobs. */
const WORTH_ASKING = 2_000_000
const MOST_JOBS = 500
/** What a payload is taken for as long as none of its sort was read. */
const UNKNOWN_CHARS = 400_000
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
  /** How long payloads of a definition are: mostly, or one was a moment ago. */
  readonly #usual = new Map<AnyJobDefinition, number>()
  /** What came in this turn. */
  #came: Held[] = []
  #readyChars = 0
  #questions = 0
  #failures = 0
  #pause: Timer | undefined
  #isClosed = false

  constructor(options: PayloadReaderOptions) {
    this.#options = options
  }

  /** These have no payload yet. */
  add(some: readonly Held[]): void {
    for (const held of some) this.#unread.add(held)
    this.#ask()
  }

  /** It was asked for, and has not come. */
  isComing(held: Held): boolean {
    return this.#asked.has(held.job)
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
    this.#isClosed = true
    this.#pause?.cancel()
  }

  #ask(): void {
    if (this.#pause || this.#isClosed) return
    while (this.#unread.size > 0 && this.#questions < MOST_QUESTIONS && this.#readyChars < MOST_READY) {
      void this.#read(this.#next())
    }
  }

  #next(): ClaimedJob[] {
    const next: ClaimedJob[] = []
    let chars = 0
    for (const held of this.#unread) {
      if (next.length === MOST_JOBS || chars >= WORTH_ASKING) break
      next.push(held.job)
      chars += this.#usual.get(held.definition) ?? UNKNOWN_CHARS
      this.#unread.delete(held)
      this.#asked.set(held.job, held)
    }
    return next
  }

  async #read(jobs: readonly ClaimedJob[]): Promise<void> {
    this.#questions += 1
    let failed: unknown
    try {
      await this.#options.read(jobs, this.#hasCome)
    } catch (error) {
      failed = error
    }
    this.#questions -= 1
    const missing = jobs.flatMap(job => this.#asked.get(job) ?? [])
    if (missing.length === 0) this.#failures = 0
    else {
      this.#waitAWhile()
      this.#options.onFailed(missing, failed ?? new Error(`${missing.length} payloads did not come`))
    }
    this.#ask()
  }

  /** What failed is claimed again at once, by us or by others: not as fast as the ledger can refuse it. */
  #waitAWhile(): void {
    const { clock, random } = this.#options
    const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** this.#failures)
    this.#failures += 1
    this.#pause ??= clock.timer(
      pauseMs * (0.5 + random() / 2),
      () => {
        this.#pause = undefined
        this.#ask()
      },
      { background: true },
    )
  }

  readonly #hasCome = (job: ClaimedJob): void => {
    const held = this.#asked.get(job)
    if (!held) return
    this.#asked.delete(job)
    const chars = job.payloadText.length
    const usual = this.#usual.get(held.definition) ?? 0
    this.#usual.set(held.definition, chars > usual ? chars : usual + (chars - usual) * WEIGHT)
    if (this.#options.isInLine(held)) {
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
