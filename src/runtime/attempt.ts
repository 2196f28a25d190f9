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

/** What the attempts of one worker, or of one call, have in common. */
export interface AttemptSetting {
  readonly clock: Clock
  readonly deadlines: Deadlines
  readonly logFor: (job: Job) => Log
  readonly payloadOf: (job: Job, definition: AnyJobDefinition) => unknown
  readonly progress: (job: Job, progress: Json) => Promise<boolean>
  /** Told what the handler threw, as it was thrown: for whoever awaits the call. */
  readonly onThrown?: (error: unknown) => void
  /** Takes the result as it was returned; it is then not stored, so it may be anything. */
  readonly onReturned?: (result: unknown) => void
}

export interface AttemptInput {
  readonly definition: AnyJobDefinition
  readonly job: Job
  readonly policy: Policy
  /** Aborted from outside, with a RedriveError that says why. */
  readonly abort: Abort
  /** Its span, if somebody records. */
  readonly span?: AttemptSpan | undefined
}

interface Performing {
  readonly setting: AttemptSetting
  readonly input: AttemptInput
  /** When it began, by the wall. */
  readonly startedAt: number
}

export const runAttempt = (setting: AttemptSetting, input: AttemptInput): Promise<Outcome> =>
  new Promise(resolve => new Attempt(setting, input, resolve).start())

/** Calls `done` once, with the outcome and what it was given. By callback: a job then costs no promises but its handler's own. */
export class Attempt<Input extends AttemptInput = AttemptInput> implements Limited, Performing {
  readonly setting: AttemptSetting
  readonly input: Input
  readonly #done: (outcome: Outcome, input: Input) => void
  #payload: unknown
  startedAt = 0
  ended = false
  timer: Timer | undefined

  constructor(setting: AttemptSetting, input: Input, done: (outcome: Outcome, input: Input) => void) {
    this.setting = setting
    this.input = input
    this.#done = done
  }

  get limitMs(): number {
    return this.input.policy.timeoutMs
  }

  overdue(): void {
    this.input.abort.abort(new RedriveError('TIMED_OUT', `timed out after ${this.limitMs} ms`))
  }

  start(): void {
    if (this.begin()) this.redriveCallsHandler()
  }

  /** Reads the payload. True: the handler can be called now; else it is called when the payload is there, if ever. */
  begin(): boolean {
    const { setting } = this
    const { definition, job, abort } = this.input
    this.startedAt = setting.deadlines.start(this)
    abort.onAbort(this)
    try {
      if (!definition.handler) {
        throw new RedriveError('HANDLER_MISSING', `Job ${definition.name} has no handler here`)
      }
      const payload = setting.payloadOf(job, definition)
      if (!isAwaitable(payload)) {
        this.#payload = payload
        return true
      }
      payload.then(
        read => {
          this.#payload = read
          this.redriveCallsHandler()
        },
        error => this.#threw(error),
      )
    } catch (error) {
      this.#threw(error)
    }
    return false
  }

  aborted(): void {
    this.#threw(this.input.abort.reason)
  }

  /** Its name is in every stack of a handler, which is cut there (policy/classify/facts.ts). */
  redriveCallsHandler(): void {
    // Ended while the payload was read: the right to run is gone.
    if (this.ended) return
    const { definition, span } = this.input
    const payload = this.#payload
    this.#payload = undefined
    try {
      const context = new Context(this)
      const value = span ? callWithin(span, definition, payload, context) : definition.handler?.(payload, context)
      if (isAwaitable(value))
        value.then(
          result => this.#returned(result),
          error => this.#threw(error),
        )
      else this.#returned(value)
    } catch (error) {
      this.#threw(error)
    }
  }

  #returned(value: unknown): void {
    if (!this.ended) this.#end(isVerdict(value) ? ofVerdict(value, this) : succeeded(value, this))
  }

  #threw(error: unknown): void {
    if (this.ended) return
    const { abort } = this.input
    this.setting.onThrown?.(error)
    this.#end(abort.aborted ? ofAbort(abort.reason, this) : { type: 'failed', failure: classify(error, about(this)) })
  }

  #end(outcome: Outcome): void {
    if (this.ended) return
    this.ended = true
    this.timer?.cancel()
    this.input.span?.end(outcome)
    this.#done(outcome, this.input)
  }
}

/** Apart: what it remembers would else be put aside for every attempt, traced or not. */
const callWithin = (span: AttemptSpan, definition: AnyJobDefinition, payload: unknown, context: HandlerContext) =>
  span.within(() => definition.handler?.(payload, context))

/** Whatever can be awaited counts: query builders are not promises. */
const isAwaitable = (value: unknown): value is PromiseLike<unknown> =>
  typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function'

/** Most return nothing. */
const SUCCEEDED: Outcome = { type: 'succeeded', result: null }

function succeeded(returned: unknown, attempt: Performing): Outcome {
  const { onReturned } = attempt.setting
  onReturned?.(returned)
  if (onReturned || returned === undefined || returned === null) return SUCCEEDED
  try {
    return { type: 'succeeded', ...encodeResult(attempt.input.definition, returned) }
  } catch (error) {
    // The work is done: running it again would only repeat it.
    return { type: 'failed', failure: classify(error, about(attempt)), final: true }
  }
}

function ofVerdict(verdict: Verdict, attempt: Performing): Outcome {
  switch (verdict.type) {
    case 'snooze':
      return { type: 'snoozed', delayMs: verdict.delayMs }
    case 'cancel':
      return { type: 'cancelled', reason: verdict.reason }
    case 'bury': {
      const failure = classify(new Error(verdict.reason), { ...about(attempt), classifier: () => 'permanent' })
      return { type: 'failed', failure: { ...failure, type: 'Buried', because: 'its handler said so' }, final: true }
    }
  }
}

function ofAbort(reason: unknown, attempt: Performing): Outcome {
  if (isRedriveError(reason, 'TIMED_OUT')) return { type: 'timed_out', failure: classify(reason, about(attempt)) }
  if (isRedriveError(reason, 'CANCEL_REQUESTED')) return { type: 'cancelled', reason: reason.message }
  const leaseLost = isRedriveError(reason, 'LEASE_LOST')
  return { type: 'interrupted', started: true, ...(leaseLost && { leaseLost }) }
}

const about = ({ input: { definition, job }, setting }: Performing): ClassifyContext => ({
  job,
  now: setting.clock.now(),
  rules: definition.rules,
  ...(definition.classify && { classifier: definition.classify }),
  ...(definition.service !== undefined && { service: definition.service }),
})

/** What the handler is given. Worked out only as far as the handler looks. */
class Context implements HandlerContext {
  readonly #attempt: Performing
  #job: HandlerContext['job'] | undefined

  constructor(attempt: Performing) {
    this.#attempt = attempt
  }

  get attempt(): number {
    return this.#attempt.input.job.attempt
  }

  get job(): HandlerContext['job'] {
    const { job } = this.#attempt.input
    const { snoozes, holds, interruptions, lost, redrives } = job
    const createdAt = new Date(job.createdAt)
    this.#job ??= { ...identityOf(job), snoozes, holds, interruptions, lost, redrives, createdAt }
    return this.#job
  }

  get signal(): AbortSignal {
    return this.#attempt.input.abort.signal
  }

  get deadline(): Date {
    const { startedAt, input } = this.#attempt
    return new Date(startedAt + input.policy.timeoutMs)
  }

  get log(): Log {
    return this.#attempt.setting.logFor(this.#attempt.input.job)
  }

  get progress(): HandlerContext['progress'] {
    const { setting, input } = this.#attempt
    return progress => setting.progress(input.job, progress)
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
