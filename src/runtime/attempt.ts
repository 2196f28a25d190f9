// One run of a handler: perform → outcome → classify. The same for a queued job and for one awaited in place. Never
// throws: whatever happens is an outcome.
import type { Clock, Timer } from '../domain/clock.js'
import { isRedriveError, RedriveError } from '../domain/errors.js'
import type { Job, JobIdentity } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import type { AttemptSpan } from '../domain/tracing.js'
import { type ClassifyContext, classify } from '../policy/classify.js'
import type { Abort } from './abort.js'
import type { Deadlines, Limited } from './deadlines.js'
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
  readonly deadlines: Deadlines
  readonly logFor: (job: Job) => Log
  readonly progress: (progress: Json) => Promise<boolean>
  /** Its span, if somebody records. */
  readonly span?: AttemptSpan | undefined
  /** Told what the handler threw, as it was thrown: for whoever awaits the call. */
  readonly onThrown?: (error: unknown) => void
  /** Takes the result as it was returned; it is then not stored, so it may be anything. */
  readonly onReturned?: (result: unknown) => void
}

export const runAttempt = (input: AttemptInput): Promise<Outcome> =>
  new Promise(resolve => startAttempt(input, resolve))

/** Calls `done` once, with the outcome. By callback: a job then costs no promises but its handler's own. */
export function startAttempt(input: AttemptInput, done: (outcome: Outcome) => void): void {
  new Attempt(input, done).start()
}

class Attempt implements Limited {
  readonly #input: AttemptInput
  readonly #done: (outcome: Outcome) => void
  ended = false
  timer: Timer | undefined

  constructor(input: AttemptInput, done: (outcome: Outcome) => void) {
    this.#input = input
    this.#done = done
  }

  get limitMs(): number {
    return this.#input.policy.timeoutMs
  }

  overdue(): void {
    this.#input.abort.abort(new RedriveError('TIMED_OUT', `timed out after ${this.limitMs} ms`))
  }

  start(): void {
    const { definition, abort, payload, deadlines } = this.#input
    deadlines.start(this)
    abort.onAbort(this)
    if (definition.handler) after(payload, this.#perform, this.#threw)
    else this.#threw(new RedriveError('HANDLER_MISSING', `Job ${definition.name} has no handler here`))
  }

  aborted(): void {
    this.#threw(this.#input.abort.reason)
  }

  // Ended while the payload was read: the right to run is gone.
  readonly #perform = (payload: unknown): void => {
    const { definition, span } = this.#input
    if (this.ended) return
    const call = () => definition.handler?.(payload, new Context(this.#input))
    after(span ? () => span.within(call) : call, this.#returned, this.#threw)
  }

  readonly #returned = (value: unknown): void => {
    if (!this.ended) this.#end(isVerdict(value) ? ofVerdict(value, this.#input) : succeeded(value, this.#input))
  }

  readonly #threw = (error: unknown): void => {
    if (this.ended) return
    const { abort, onThrown } = this.#input
    onThrown?.(error)
    this.#end(
      abort.aborted
        ? ofAbort(abort.reason, this.#input)
        : { type: 'failed', failure: classify(error, about(this.#input)) },
    )
  }

  #end(outcome: Outcome): void {
    if (this.ended) return
    this.ended = true
    this.timer?.cancel()
    this.#input.span?.end(outcome)
    this.#done(outcome)
  }
}

/** Goes on with what `work` gives, now or later. Whatever can be awaited counts: query builders are not promises. */
function after(work: () => unknown, goOn: (value: unknown) => void, threw: (error: unknown) => void): void {
  try {
    const value = work()
    const { then } = (value ?? {}) as PromiseLike<unknown>
    if (typeof then === 'function') then.call(value, goOn, threw)
    else goOn(value)
  } catch (error) {
    threw(error)
  }
}

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
  const leaseLost = isRedriveError(reason, 'LEASE_LOST')
  return { type: 'interrupted', started: true, ...(leaseLost && { leaseLost }) }
}

const about = ({ definition, job, clock }: AttemptInput): ClassifyContext => ({
  job,
  now: clock.now(),
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
