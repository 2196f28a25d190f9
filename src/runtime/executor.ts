// One attempt of a claimed job, as a visible pipeline: claim → perform → outcome → classify → decide → settle →
// announce. The claim was the worker's; perform, outcome and classify are runAttempt's; this file does the rest.
import type { Clock, Random } from '../domain/clock.js'
import type { Announce } from '../domain/event.js'
import type { Failure } from '../domain/failure.js'
import type { ClaimedJob, Job } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import { LIMITS } from '../domain/limits.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { Tracing } from '../domain/tracing.js'
import { decide } from '../policy/decide.js'
import type { Abort } from './abort.js'
import { announceEnd } from './announce-end.js'
import { identityOf, startAttempt } from './attempt.js'
import { Deadlines } from './deadlines.js'
import type { AnyJobDefinition, Log } from './definition.js'
import { decodePayload, toText } from './payload.js'
import type { Policies } from './policies.js'
import type { ServiceState } from './service-state.js'
import type { Settler } from './settler.js'

export interface ExecutorOptions {
  readonly worker: string
  readonly policies: Policies
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
}

export class Executor {
  readonly #options: ExecutorOptions
  readonly #deadlines: Deadlines

  constructor(options: ExecutorOptions) {
    this.#options = options
    this.#deadlines = new Deadlines(options.clock)
  }

  /**
   * Runs a job's handler and hands its end to the settler. Calls `performed` when the handler has ended: its slot is
   * free then, while the end is still being written. `fetchedAt`: the monotonic time of its claim. Never throws.
   */
  execute(
    job: ClaimedJob,
    { definition, service }: { readonly definition: AnyJobDefinition; readonly service: ServiceState | undefined },
    abort: Abort,
    fetchedAt: number,
    performed: () => void,
  ): void {
    const { policies, clock, worker, announce } = this.#options
    const startedAt = clock.monotonic()
    const policy = policies.for(definition.policy, job)
    announce('job.started', () => {
      const waitedMs = Math.max(0, job.claimedAt - job.waitingSince) + (startedAt - fetchedAt)
      return { job: identityOf(job), attempt: job.attempt, worker, waitedMs }
    })
    const ended = (outcome: Outcome) => {
      performed()
      this.settle(job, policy, outcome, { fetchedAt, startedAt }, service)
    }
    if (job.suspect) this.#performSuspect(job, definition, policy, abort, ended, performed)
    else this.#perform(job, definition, policy, abort, ended)
  }

  #perform(
    job: ClaimedJob,
    definition: AnyJobDefinition,
    policy: Policy,
    abort: Abort,
    ended: (outcome: Outcome) => void,
  ): void {
    const { clock, logFor, saveProgress, tracing, worker } = this.#options
    const span = tracing?.isActive ? tracing.attempt(job, worker) : undefined
    const payload = () => decodePayload(definition, job.payloadText)
    const progress = (value: Json) => saveProgress(job, toText(value, PROGRESS))
    startAttempt(
      { definition, job, payload, policy, abort, clock, deadlines: this.#deadlines, logFor, progress, span },
      ended,
    )
  }

  /** A job whose last worker died runs only once its start is on record. */
  #performSuspect(
    job: ClaimedJob,
    definition: AnyJobDefinition,
    policy: Policy,
    abort: Abort,
    ended: (outcome: Outcome) => void,
    performed: () => void,
  ): void {
    this.#options.markStarted(job).then(
      ours => (ours ? this.#perform(job, definition, policy, abort, ended) : performed()),
      () => ended({ type: 'interrupted', started: false }),
    )
  }

  /** decide → settle → announce. */
  settle(
    job: ClaimedJob,
    policy: Policy,
    outcome: Outcome,
    times: { fetchedAt: number; startedAt: number },
    service: ServiceState | undefined,
  ): void {
    const { settler, clock, random, announce, worker, onDeferred } = this.#options
    const endedAt = clock.monotonic()
    // The database's time, carried forward by our own stopwatch: no clock of ours is compared with it (invariant 5).
    const now = job.claimedAt + (endedAt - times.fetchedAt)
    const { id, lease, receipt } = job
    const situation = { outcome, job, policy, now, random }
    const decision = service ? service.decide(situation, id, lease, endedAt) : decide(situation)
    settler.write({ id, lease, receipt, outcome, decision }, settled => {
      if (settled && 'delayMs' in decision) onDeferred(decision.delayMs)
      if (settled) announceEnd(announce, job, { outcome, decision, worker, durationMs: endedAt - times.startedAt })
      else announce('job.refused', () => ({ job: identityOf(job), outcome: outcome.type, worker }))
    })
  }
}

const PROGRESS = {
  what: 'The progress of a job',
  unserialisable: 'RESULT_NOT_SERIALISABLE',
  tooLarge: 'RESULT_TOO_LARGE',
  maxBytes: LIMITS.progressBytes,
} as const

/** What is settled in the place of an end that the ledger could not store. */
export const unstorable = (error: unknown): Failure => ({
  kind: 'system',
  because: 'the ledger could not store how the attempt ended',
  type: 'Unstorable',
  message: `The end of the attempt could not be stored: ${(error as Error).message}`,
  causes: [],
  fingerprint: 'v1:unstorable',
})
