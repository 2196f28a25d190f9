// One run of a handler: perform → outcome → classify. The same for a queued job and for one awaited in place. Never
// throws: whatever happens is an outcome.
import type { Clock } from '../domain/clock.js'
import { isRedriveError, RedriveError } from '../domain/errors.js'
import type { Job, JobIdentity } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import { type ClassifyContext, classify } from '../policy/classify.js'
import type { AnyJobDefinition, HandlerContext, Log } from './definition.js'
import { encodeResult } from './payload.js'
import { isVerdict, type Verdict } from './verdict.js'

export interface AttemptInput {
  readonly definition: AnyJobDefinition
  readonly job: Job
  readonly payload: () => unknown
  readonly policy: Policy
  /** Aborted from outside, with a RedriveError that says why. */
  readonly abort: AbortController
  readonly clock: Clock
  readonly log: Log
  readonly progress: (progress: Json) => Promise<boolean>
  /** Told what the handler threw, as it was thrown: for whoever awaits the call. */
  readonly onThrown?: (error: unknown) => void
  /** Takes the result as it was returned; it is then not stored, so it may be anything. */
  readonly onReturned?: (result: unknown) => void
}

export async function runAttempt(input: AttemptInput): Promise<Outcome> {
  const { definition, policy, abort, clock } = input
  const { signal } = abort
  const timer = clock.timer(policy.timeoutMs, () => abort.abort(timedOut(policy.timeoutMs)), { background: true })
  try {
    if (!definition.handler) throw new RedriveError('HANDLER_MISSING', `Job ${definition.name} has no handler here`)
    const payload = await unlessAborted(input.payload(), signal)
    // Aborted while it was read: the right to run it is gone.
    signal.throwIfAborted()
    const returned = await unlessAborted(definition.handler(payload, contextOf(input)), signal)
    return isVerdict(returned) ? ofVerdict(returned, input) : succeeded(returned, input)
  } catch (error) {
    input.onThrown?.(error)
    return signal.aborted ? ofAbort(signal.reason, input) : { type: 'failed', failure: classify(error, about(input)) }
  } finally {
    timer.cancel()
  }
}

const timedOut = (ms: number) => new RedriveError('TIMED_OUT', `timed out after ${ms} ms`)

/** What the handler gives, or the abort, whichever is first: a handler that never returns ends all the same. */
function unlessAborted<T>(work: PromiseLike<T> | T, signal: AbortSignal): Promise<T> | T {
  if (!isThenable(work)) return work
  return new Promise<T>((resolve, reject) => {
    const aborted = () => reject(signal.reason)
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted, { once: true })
    work.then(resolve, reject)
  })
}

/** Not only promises of ours: query builders and other libraries' promises are awaited the same way. */
const isThenable = <T>(work: PromiseLike<T> | T): work is PromiseLike<T> =>
  typeof (work as PromiseLike<T> | undefined | null)?.then === 'function'

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

function contextOf({ job, policy, abort, clock, log, progress }: AttemptInput): HandlerContext {
  const startedAt = clock.now()
  return {
    job: {
      ...identityOf(job),
      snoozes: job.snoozes,
      holds: job.holds,
      interruptions: job.interruptions,
      lost: job.lost,
      redrives: job.redrives,
      createdAt: new Date(job.createdAt),
    },
    attempt: job.attempt,
    signal: abort.signal,
    get deadline() {
      return new Date(startedAt + policy.timeoutMs)
    },
    log,
    progress,
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
