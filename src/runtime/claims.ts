// What a worker has of the ledger, for as long as it has its session: jobs that it asked for, jobs that were handed to it, and
// those of either sort that it did not hear of and found again. A watchdog gives up what hangs (pitfall 17).
import type { Clock } from '../domain/clock.js'
import { RedriveError } from '../domain/errors.js'
import type { Announce } from '../domain/event.js'
import type { Lease, SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import type { Consumer, Lane, LaneDemand, Transport } from '../transport/transport.js'

/** A fetch that takes longer than this has hung, whatever its own timeout says. */
const FETCH_LIMIT_MS = 45_000
/** A fetch that failed may still take jobs for so long: no statement takes longer. */
const LATE_CLAIM_MS = 60_000

export interface ClaimsOptions {
  readonly worker: string
  readonly lanes: readonly Lane[]
  readonly transport: Transport
  readonly clock: Clock
  readonly announce: Announce
  readonly onWake: () => void
  readonly onUp: () => void
  readonly onHanded: (job: ClaimedJob) => void
  /** Called with jobs that were taken for us, and that we did not hear of. */
  readonly onFound: (jobs: readonly ClaimedJob[]) => void
  /** Tells of a job, then or later, whether it was here when this was called. */
  readonly whatIsHere: () => (job: ClaimedJob) => boolean
}

/** So many that were found are remembered, in case they are heard of or found again. */
const MOST_FOUND = 10_000

export class Claims {
  readonly #options: ClaimsOptions
  #consumer: Consumer | undefined
  #answeredAt: number | undefined
  /** When to look for jobs that a failed fetch took. */
  #missedLooksAt: number[] = []
  readonly #found = new Set<Lease>()
  /** For each look that is under way: what has been heard of since it began. */
  readonly #heardMeanwhile = new Set<Set<Lease>>()

  constructor(options: ClaimsOptions) {
    this.#options = options
  }

  open(session: SessionId): void {
    void this.close()
    const { transport, lanes, onWake, onUp } = this.#options
    this.#consumer = transport.consume({ session, lanes, onWake, onUp, onHanded: job => this.#hear(job) })
  }

  async close(): Promise<void> {
    const consumer = this.#consumer
    this.#consumer = undefined
    await consumer?.close()
  }

  /** Changes with every session: what was claimed under another one is not ours to run. */
  get current(): object | undefined {
    return this.#consumer
  }

  /** Milliseconds since something was asked for and answered; undefined before the first time. */
  get answeredAgoMs(): number | undefined {
    return this.#answeredAt === undefined ? undefined : this.#options.clock.monotonic() - this.#answeredAt
  }

  async fetch(demand: readonly LaneDemand[], limit: number): Promise<ClaimedJob[]> {
    const jobs = await this.#withinLimit(this.#consumer?.fetch(demand, limit))
    this.#answeredAt = this.#options.clock.monotonic()
    return this.#heardMeanwhile.size + this.#found.size === 0 ? jobs : jobs.filter(job => this.#isNews(job))
  }

  /**
   * A fetch whose answer was lost may have taken jobs all the same. Our session holds them, so nobody else ever will:
   * they are looked for after a failed fetch, and once more when it cannot be under way any longer.
   */
  async findMissed(): Promise<void> {
    const [next] = this.#missedLooksAt
    if (next === undefined || next > this.#options.clock.monotonic()) return
    await this.#find(async consumer => this.#withinLimit(consumer.held()))
    this.#missedLooksAt.shift()
  }

  /** Jobs of these lanes may be handed to us from now on; of none: no more. False: not possible now. */
  async standBy(lanes: readonly Lane[]): Promise<boolean> {
    return (await this.#consumer?.standBy?.(lanes)) ?? false
  }

  /** Says that we still stand by, and takes what was handed to us at least so long ago and not heard of. */
  async stand(ms: number): Promise<{ stands: boolean; found: number }> {
    let stands = false
    const found = await this.#find(async consumer => {
      const standing = await consumer.stand?.(ms)
      stands = standing?.stands ?? false
      return standing?.held ?? []
    })
    return { stands, found }
  }

  /** Of what is held: that which was not here when we asked, did not come since, claimed or handed over, and was not found before. */
  async #find(ask: (consumer: Consumer) => Promise<ClaimedJob[]>): Promise<number> {
    const consumer = this.#consumer
    if (!consumer) return 0
    const wasHere = this.#options.whatIsHere()
    const heard = new Set<Lease>()
    this.#heardMeanwhile.add(heard)
    try {
      const held = await ask(consumer)
      // Under another session they are others' to find.
      if (consumer !== this.#consumer) return 0
      const found = held.filter(job => !wasHere(job) && !heard.has(job.lease) && !this.#found.has(job.lease))
      this.#remember(found)
      if (found.length > 0) this.#options.onFound(found)
      return found.length
    } finally {
      this.#heardMeanwhile.delete(heard)
    }
  }

  #remember(found: readonly ClaimedJob[]): void {
    for (const { lease } of found) this.#found.add(lease)
    for (const lease of this.#found) {
      if (this.#found.size <= MOST_FOUND) break
      this.#found.delete(lease)
    }
  }

  #hear(job: ClaimedJob): void {
    if (this.#isNews(job)) this.#options.onHanded(job)
  }

  /** One that we hear of; false: a look was quicker. */
  #isNews({ lease }: ClaimedJob): boolean {
    if (this.#heardMeanwhile.size > 0) for (const heard of this.#heardMeanwhile) heard.add(lease)
    return this.#found.size === 0 || !this.#found.delete(lease)
  }

  #withinLimit(fetching: Promise<ClaimedJob[]> = Promise.resolve([])): Promise<ClaimedJob[]> {
    const { clock, announce, worker } = this.#options
    return new Promise<ClaimedJob[]>((resolve, reject) => {
      const giveUp = () => {
        announce('worker.stalled', () => ({ worker, sinceMs: this.answeredAgoMs ?? FETCH_LIMIT_MS }))
        reject(new RedriveError('STATEMENT_TIMEOUT', `Nothing was fetched for ${FETCH_LIMIT_MS} ms`))
      }
      const timer = clock.timer(FETCH_LIMIT_MS, giveUp, { background: true })
      fetching.finally(() => timer.cancel()).then(resolve, reject)
    }).catch(error => {
      const now = clock.monotonic()
      this.#missedLooksAt = [now, now + LATE_CLAIM_MS]
      throw error
    })
  }
}
