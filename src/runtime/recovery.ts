// The recovery run: rescue jobs of dead workers, release retries that are due, bury the exhausted, run the triage rules,
// remove what is past its retention. Every five minutes by whichever process gets there first, and on demand; each run is on record.
// Between runs, sessions are looked at when the next of them would lapse, so that a dead worker's jobs wait for its lease only.
import { cancelAsked } from '../ledger/cancel.js'
import { noticeMissed } from '../ledger/group-notice.js'
import {
  finishRun,
  type RecoveryCause,
  type RecoveryCounts,
  type RecoveryRun,
  recoveryStatistics,
  showLife,
  startRun,
} from '../ledger/recovery-run.js'
import { announceTriage } from '../ledger/triage-news.js'
import { runTriage } from '../ledger/triage-run.js'
import { judge } from '../policy/triage.js'
import { buryExhausted } from './exhausted.js'
import { announceNews } from './group-watch.js'
import { type Retention, tidy } from './janitor.js'
import { type Loop, loop } from './loop.js'
import { promoteAll } from './promoter.js'
import { rescue } from './rescuer.js'
import type { Runtime } from './runtime.js'

export interface RecoveryOptions {
  readonly intervalMs: number
  /** Of this process's workers; those of others are most likely the same. */
  readonly leaseMs: number
  readonly retention: Retention
  /** Who runs it, for the record. */
  readonly worker: string
}

/** Sessions are looked at so often, whenever the next would lapse: one that was opened meanwhile is seen before it does. */
const LONGEST_WAIT_MS = 5_000
const LOOKS_PER_LEASE = 3
const SHORTEST_WAIT_MS = 100
/** Of many processes that look for the same lapsed session, one shall find it. */
const SPREAD_MS = 200
/** While the database is in trouble, and where leases are short. */
const OFTEN_MS = 1_000
/** So often jobs are also looked for whose session was ended by a process that died before it could settle them. */
const THOROUGH_EVERY_MS = 10_000
/** After trouble with the database, others get this long to renew before their sessions count as lapsed. */
const SETTLE_DOWN_MS = 3_000

export class Recovery {
  readonly #runtime: Runtime
  readonly #options: RecoveryOptions
  readonly #schedule: Loop
  readonly #lapses: Loop
  #thoroughAt: number | undefined

  constructor(runtime: Runtime, options: RecoveryOptions) {
    this.#runtime = runtime
    this.#options = options
    const { clock, random, announce } = runtime
    const onError = (error: unknown) => announce('error', () => ({ where: 'recovery', error }))
    // Asked more often than needed, so that a lost process is made up for soon; the ledger says whether it is time.
    const askMs = Math.min(options.intervalMs / 5, 30_000)
    const scheduled = async () => {
      await this.#attempt('schedule', options.intervalMs * 0.95)
      return askMs
    }
    this.#schedule = loop({ clock, random, onError, step: scheduled })
    let healthySince = clock.monotonic()
    this.#lapses = loop({
      clock,
      random,
      onError: error => {
        healthySince = clock.monotonic()
        onError(error)
      },
      step: async () => {
        if (clock.monotonic() - healthySince >= SETTLE_DOWN_MS) return this.#rescueLapsed()
        await recoveryStatistics(runtime.db, 1)
        return OFTEN_MS
      },
    })
  }

  start(): void {
    this.#schedule.start()
    this.#lapses.start()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#schedule.stop(), this.#lapses.stop()])
  }

  /** Runs now. Undefined: another run is under way. */
  run(): Promise<RecoveryRun | undefined> {
    return this.#attempt('demand')
  }

  /** Returns how long to wait for the next look. */
  async #rescueLapsed(): Promise<number> {
    const { db, announce, clock, random } = this.#runtime
    const now = clock.monotonic()
    const thorough = this.#thoroughAt === undefined || now - this.#thoroughAt >= THOROUGH_EVERY_MS
    if (thorough) this.#thoroughAt = now
    const { rescued, buried, nextLapseInMs } = await rescue(this.#runtime, { thorough })
    if (rescued > 0) {
      announceNews(announce, await noticeMissed(db))
      const run = await startRun(db, 'lapsed_session', this.#options.worker)
      if (run) await finishRun(db, run.id, { ...NOTHING, rescued, buried }, null)
    }
    const longestMs = Math.min(LONGEST_WAIT_MS, Math.max(OFTEN_MS, this.#options.leaseMs / LOOKS_PER_LEASE))
    const waitMs = (nextLapseInMs ?? longestMs) + random() * SPREAD_MS
    return Math.min(longestMs, Math.max(SHORTEST_WAIT_MS, waitMs))
  }

  async #attempt(cause: RecoveryCause, ifNoneWithinMs?: number): Promise<RecoveryRun | undefined> {
    const { db, announce } = this.#runtime
    const run = await startRun(db, cause, this.#options.worker, ifNoneWithinMs)
    if (!run) return undefined
    const counts = { ...NOTHING }
    let failure: unknown
    try {
      await this.#recover(run.id, counts)
    } catch (error) {
      failure = error
    }
    const error = failure === undefined ? null : (failure as Error).message
    const finished = await finishRun(db, run.id, counts, error)
    announce('recovery.finished', () => ({ cause, ...counts, error: error ?? undefined }))
    if (failure !== undefined && cause === 'schedule') throw failure
    return finished
  }

  async #recover(id: string, counts: { -readonly [Key in keyof RecoveryCounts]: number }): Promise<void> {
    const { db, announce } = this.#runtime
    const alive = async () => {
      if (!(await showLife(db, id))) throw new Error('the run was given up by another process')
    }
    const rescued = await rescue(this.#runtime)
    counts.rescued += rescued.rescued
    counts.buried += rescued.buried
    await alive()
    counts.promoted += await promoteAll(this.#runtime)
    await cancelAsked(db)
    await alive()
    counts.buried += await buryExhausted(this.#runtime, this.#options.worker, alive)
    await alive()
    announceNews(announce, await noticeMissed(db))
    counts.triaged += await this.#triage(alive)
    Object.assign(counts, await tidy(db, this.#options.retention, alive))
  }

  async #triage(alive: () => Promise<void>): Promise<number> {
    const { db, announce, transport } = this.#runtime
    const { rules } = await runTriage(db, {
      judge,
      onDone: done => announceTriage(announce, done),
      onWork: queue => transport.wake(queue),
      between: alive,
    })
    return rules.reduce((sum, { acted }) => sum + acted, 0)
  }
}

const NOTHING: RecoveryCounts = { rescued: 0, promoted: 0, buried: 0, triaged: 0, cleaned: 0, expired: 0 }
