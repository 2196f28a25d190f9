// One attempt of a claimed job, as a visible pipeline: claim → perform → outcome → classify → decide → settle →
// announce. The claim was the worker's; perform, outcome and classify are runAttempt's; this file does the rest.
import type { Clock, Random } from '../domain/clock.js'
import type { Announce, Events } from '../domain/event.js'
import type { Failure } from '../domain/failure.js'
import type { ClaimedJob, Job } from '../domain/job.js'
import { LIMITS } from '../domain/limits.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { Settlement } from '../domain/settlement.js'
import type { Tracing } from '../domain/tracing.js'
import { decide } from '../policy/decide.js'
import { announceEnd, type End } from './announce-end.js'
import { Attempt, type AttemptSetting, identityOf } from './attempt.js'
import { Deadlines } from './deadlines.js'
import type { Log } from './definition.js'
import { decodePayload, toText } from './payload.js'
import type { Settler } from './settler.js'
import type { Held, Running } from './slots.js'

export interface ExecutorOptions {
  readonly worker: string
  readonly settler: Pick<Settler, 'write'>
  readonly clock: Clock
  readonly random: Random
  readonly announce: Announce
  /** A job will be due again in so long. */
  readonly onDeferred: (delayMs: number) => void
  readonly logFor: (job: Job) => Log
  readonly tracing?: Tracing | undefined
  readonly saveProgress: (job: ClaimedJob, progress: string) => Promise<boolean>
  /** Records the start of a job whose last worker died. False: it is not ours any more. */
  readonly markStarted: (job: ClaimedJob) => Promise<boolean>
  /** Its handler has ended, and its place is free, while the end is still being written. */
  readonly onPerformed: (running: Running) => void
}

/** What is written, and what is told of it then: one object, because there is one for every job. */
type Ended = Settlement & End

export class Executor {
  readonly #options: ExecutorOptions
  readonly #setting: AttemptSetting
  #ready: Attempt<Running>[] = []

  constructor(options: ExecutorOptions) {
    const { clock, logFor, saveProgress } = options
    this.#options = options
    this.#setting = {
      clock,
      logFor,
      deadlines: new Deadlines(clock),
      payloadOf: (job, definition) => decodePayload(definition, (job as ClaimedJob).payloadText),
      progress: (job, progress) => saveProgress(job as ClaimedJob, toText(progress, PROGRESS)),
    }
  }

  /** Runs a job's handler and hands its end to the settler. Never throws. */
  execute(running: Running): void {
    const { clock, announce } = this.#options
    running.startedAt = clock.monotonic()
    announce('job.started', this.#startOf, running)
    if (running.job.suspect) this.#performSuspect(running)
    else this.#perform(running)
  }

  readonly #startOf = ({ job, fetchedAt, startedAt }: Running): Events['job.started'] => {
    const waitedMs = Math.max(0, job.claimedAt - job.waitingSince) + (startedAt - fetchedAt)
    return { job: identityOf(job), attempt: job.attempt, worker: this.#options.worker, waitedMs }
  }

  #perform(running: Running): void {
    const { tracing, worker } = this.#options
    if (tracing?.isActive) running.span = tracing.attempt(running.job, worker)
    if (this.#ready.push(new Attempt(this.#setting, running, this.#performed)) === 1) void NOW.then(this.#startReady)
  }

  /** From the bottom of the stack: what lies between there and a handler is captured and printed with each of its errors. */
  readonly #startReady = (): void => {
    const ready = this.#ready
    this.#ready = []
    for (const attempt of ready) if (attempt.begin()) attempt.redriveCallsHandler()
  }

  /** A job whose last worker died runs only once its start is on record. */
  #performSuspect(running: Running): void {
    const { markStarted, onPerformed } = this.#options
    markStarted(running.job).then(
      ours => (ours ? this.#perform(running) : onPerformed(running)),
      () => this.#performed({ type: 'interrupted', started: false }, running),
    )
  }

  readonly #performed = (outcome: Outcome, running: Running): void => {
    this.#options.onPerformed(running)
    this.settle(running, running.policy, outcome)
  }

  /** decide → settle → announce. */
  settle({ job, lane, fetchedAt, startedAt }: Held, policy: Policy, outcome: Outcome): void {
    const { settler, clock, random, worker } = this.#options
    const endedAt = clock.monotonic()
    // The database's time, carried forward by our own stopwatch: no clock of ours is compared with it (invariant 5).
    const now = job.claimedAt + (endedAt - fetchedAt)
    const { id, lease, receipt } = job
    const situation = { outcome, job, policy, now, random }
    const decision = lane.service ? lane.service.decide(situation, id, lease, endedAt) : decide(situation)
    if (job.payloadText.length > LARGE_CHARS) forgetPayload(job)
    settler.write(
      { id, lease, receipt, outcome, decision, job, worker, durationMs: endedAt - startedAt },
      this.#written,
    )
  }

  readonly #written = (settled: boolean, ended: Ended): void => {
    const { announce, onDeferred } = this.#options
    if (settled && 'delayMs' in ended.decision) onDeferred(ended.decision.delayMs)
    if (settled) announceEnd(announce, ended)
    else announce('job.refused', refusalOf, ended)
  }
}

const refusalOf = ({ job, outcome, worker }: Ended): Events['job.refused'] => ({
  job: identityOf(job),
  outcome: outcome.type,
  worker,
})

/** Thousands of ends may wait to be written, and none needs its payload any more. */
const LARGE_CHARS = 1_000

function forgetPayload(job: { payloadText: string }): void {
  job.payloadText = ''
}

const NOW = Promise.resolve()

const PROGRESS = {
  what: 'The progress of a job',
  unserialisable: 'RESULT_NOT_SERIALISABLE',
  tooLarge: 'RESULT_TOO_LARGE',
  maxBytes: LIMITS.progressBytes,
} as const

/** What is settled in the place of an end that the ledger could not store. */
export const unstorable = (settlement: Settlement, error: unknown): Settlement => {
  const failure: Failure = {
    kind: 'system',
    because: 'the ledger could not store how the attempt ended',
    type: 'Unstorable',
    message: `The end of the attempt could not be stored: ${(error as Error).message}`,
    causes: [],
    fingerprint: 'v1:unstorable',
  }
  const outcome = { type: 'failed', failure, final: true } as const
  return { ...settlement, outcome, decision: { type: 'bury', reason: failure.message } }
}
