// One run of a handler: perform → outcome → classify. The same for a queued job and for one awaited in place. Never
// throws: whatever happens is an outcome.
import type { Clock } from '../domain/clock.js'
import { isRedriveError, RedriveError } from '../domain/errors.js'
import type { Job, JobIdentity } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import { type ClassifyContext, classify } from '../policy/classify.js'
import type { Abort } from './abort.js'
import type { AnyJobDefinition, HandlerContext, Log } from './definition.js'
import { encodeResult } from './payload.js'
import { isVerdict, type Verdict } from './verdict.js'

export interface AttemptInput {
  readonly definition: AnyJobDefinition
  readonly job: Job
  readonly payload: () => unknown
  readonly policy: Policy
  /** Aborted from outside, with a RedriveError that says why. */
  readonly abort: Abort
  readonly clock: Clock
  readonly logFor: (job: Job) => Log
  readonly progress: (progress: Json) => Promise<boolean>
  /** Told what the handler threw, as it was thrown: for whoever awaits the call. */
  readonly onThrown?: (error: unknown) => void
  /** Takes the result as it was returned; it is then not stored, so it may be anything. */
  readonly onReturned?: (result: unknown) => void
}

export async function runAttempt(input: AttemptInput): Promise<Outcome> {
  const { definition, policy, abort, clock } = input
  const timer = clock.timer(policy.timeoutMs, () => abort.abort(timedOut(policy.timeoutMs)), { background: true })
  try {
    if (!definition.handler) throw new RedriveError('HANDLER_MISSING', `Job ${definition.name} has no handler here`)
    const payload = await abort.unless(input.payload())
    // Aborted while it was read: the right to run it is gone.
    if (abort.aborted) throw abort.reason
    const returned = await abort.unless(definition.handler(payload, new Context(input)))
    return isVerdict(returned) ? ofVerdict(returned, input) : succeeded(returned, input)
  } catch (error) {
    input.onThrown?.(error)
    return abort.aborted ? ofAbort(abort.reason, input) : { type: 'failed', failure: classify(error, about(input)) }
  } finally {
    timer.cancel()
  }
}

const timedOut = (ms: number) => new RedriveError('TIMED_OUT', `timed out after ${ms} ms`)

function succeeded(returned: unknown, input: AttemptInput): Outcome {
  input.onReturned?.(returned)
  if (input.onReturned || returned === undefined || returned === null) return { type: 'succeeded', result: null }
  try {
    return { type: 'succeeded', result: encodeResult(input.definition, returned) }
  } catch (error) {
    // The work is done: running it again would only repeat it.
    return { type: 'failed', failure: classify(error, about(input)), final: true }
  }
}

function ofVerdict(verdict: Verdict, input: AttemptInput): Outcome {
  switch (verdict.type) {
    case 'snooze':
      return { type: 'snoozed', delayMs: verdict.delayMs }
    case 'cancel':
      return { type: 'cancelled', reason: verdict.reason }
    case 'bury': {
      const failure = classify(new Error(verdict.reason), { ...about(input), classifier: () => 'permanent' })
      return { type: 'failed', failure: { ...failure, type: 'Buried', because: 'its handler said so' }, final: true }
    }
  }
}

function ofAbort(reason: unknown, input: AttemptInput): Outcome {
  if (isRedriveError(reason, 'TIMED_OUT')) return { type: 'timed_out', failure: classify(reason, about(input)) }
  if (isRedriveError(reason, 'CANCEL_REQUESTED')) return { type: 'cancelled', reason: reason.message }
  return { type: 'interrupted', started: true }
}

const about = ({ definition, job }: AttemptInput): ClassifyContext => ({
  job,
  rules: definition.rules,
  ...(definition.classify && { classifier: definition.classify }),
  ...(definition.service !== undefined && { service: definition.service }),
})

/** What the handler is given. Worked out only as far as the handler looks. */
class Context implements HandlerContext {
  readonly #input: AttemptInput
  readonly #startedAt: number
  readonly attempt: number
  readonly progress: HandlerContext['progress']
  #job: HandlerContext['job'] | undefined

  constructor(input: AttemptInput) {
    this.#input = input
    this.#startedAt = input.clock.now()
    this.attempt = input.job.attempt
    this.progress = input.progress
  }

  get job(): HandlerContext['job'] {
    const { job } = this.#input
    const { snoozes, holds, interruptions, lost, redrives } = job
    const createdAt = new Date(job.createdAt)
    this.#job ??= { ...identityOf(job), snoozes, holds, interruptions, lost, redrives, createdAt }
    return this.#job
  }

  get signal(): AbortSignal {
    return this.#input.abort.signal
  }

  get deadline(): Date {
    return new Date(this.#startedAt + this.#input.policy.timeoutMs)
  }

  get log(): Log {
    return this.#input.logFor(this.#input.job)
  }
}

/** Only what names the job: what handlers, classifiers and events may see. */
export const identityOf = (job: JobIdentity): JobIdentity => ({
  id: job.id,
  queue: job.queue,
  name: job.name,
  priority: job.priority,
  ...(job.tenant !== undefined && { tenant: job.tenant }),
  ...(job.user !== undefined && { user: job.user }),
  ...(job.project !== undefined && { project: job.project }),
  ...(job.service !== undefined && { service: job.service }),
  ...(job.uniqueKey !== undefined && { uniqueKey: job.uniqueKey }),
})
