// A job or function run here and now, with retries, and awaited: the same attempt, the same decisions and the same dead
// letters as a queued job; only the waiting between attempts happens in the caller's process.
import { sleep } from '../domain/clock.js'
import type { Decision } from '../domain/decision.js'
import { PermanentError, RedriveError } from '../domain/errors.js'
import { type Lease, newJobId } from '../domain/ids.js'
import type { Job, JobIdentity } from '../domain/job.js'
import type { InProcessEnd } from '../ledger/in-process.js'
import { decide } from '../policy/decide.js'
import { Abort } from './abort.js'
import { admit, serviceHeld, serviceOfCall } from './admission.js'
import { announceEnd } from './announce-end.js'
import { type AttemptSetting, runAttempt } from './attempt.js'
import { Deadlines } from './deadlines.js'
import type { AnyJobDefinition } from './definition.js'
import type { Runtime } from './runtime.js'
import type { ServiceState } from './service-state.js'

/** A runtime that may have no ledger: then failures are judged and retried all the same, but not remembered. */
export type InProcessRuntime = Pick<Runtime, 'clock' | 'random' | 'announce' | 'policies' | 'logFor' | 'tracing'> & {
  readonly services?: Runtime['services']
  readonly record?: (end: InProcessEnd) => Promise<void>
}

export interface InProcessCall {
  readonly definition: AnyJobDefinition
  /** As it will be stored with a dead letter. */
  readonly payloadText: string
  readonly payload: () => unknown
  readonly signal?: AbortSignal | undefined
  readonly about?: Partial<Pick<JobIdentity, 'tenant' | 'user' | 'project' | 'priority'>>
  /**
   * `always`: a job, whose result is stored and kept in the history. `failures`: a plain function, which may return
   * anything and leaves a record only if an attempt failed.
   */
  readonly recorded: 'always' | 'failures'
}

export async function callInProcess(runtime: InProcessRuntime, call: InProcessCall): Promise<unknown> {
  const { clock, random, announce, policies, logFor, tracing } = runtime
  const { definition } = call
  const startedAt = clock.monotonic()
  const attempts: { settled: InProcessEnd['attempts'][number]; at: number }[] = []
  const identity = identityOfCall(call, runtime)
  const policy = policies.forCall(definition.policy, identity)
  const settings = { worker: 'in-process' }
  let job: Job & { readonly payloadText: string } = { ...firstOf(identity, clock.now()), payloadText: call.payloadText }
  let thrown: unknown
  let returned: unknown
  const setting: AttemptSetting = {
    clock,
    deadlines: new Deadlines(clock),
    logFor,
    payloadOf: call.payload,
    progress: async () => true,
    onThrown: error => {
      thrown = error
    },
    ...(call.recorded === 'failures' && {
      onReturned: result => {
        returned = result
      },
    }),
  }
  const service = await serviceOfCall(runtime, definition.service)

  for (let run = 1; ; run += 1) {
    const lease = `${identity.id}/${run}` as Lease
    if (service) await mayCall(service, lease)
    const abort = new Abort()
    const stopListening = forward(call.signal, abort)
    const attemptAt = clock.monotonic()
    thrown = undefined
    const span = tracing?.isActive ? tracing.attempt(job, settings.worker, true) : undefined
    const outcome = await runAttempt(setting, { definition, job, policy, abort, span })
    stopListening()
    const endedAt = clock.monotonic()
    const now = job.firstClaimedAt + (endedAt - startedAt)
    const situation = { outcome, job, policy, now, random }
    const decision = service ? service.decide(situation, job.id, lease) : decide(situation)
    if (decision.type !== 'complete')
      attempts.push({ settled: { outcome, decision, number: job.attempt, endedMsAgo: 0 }, at: endedAt })
    announceEnd(announce, { ...settings, job, outcome, decision, durationMs: endedAt - attemptAt })
    if (service && decision.type === 'hold' && !decision.spent) {
      await remember({ type: 'cancel', reason: decision.reason })
      throw serviceHeld(service, thrown)
    }
    if ('delayMs' in decision) {
      const late = policy.totalMs !== null && now + decision.delayMs - job.firstClaimedAt > policy.totalMs
      if (!late) await sleep(clock, decision.delayMs, call.signal)
      if (late || call.signal?.aborted) {
        const reason = late ? 'it would wait past its total limit' : 'its caller gave up waiting'
        await remember({ type: 'cancel', reason })
        throw new RedriveError('CANCELLED', `The call of ${definition.name} was cancelled: ${reason}`)
      }
      job = decision.type === 'return' ? { ...job, snoozes: job.snoozes + 1 } : { ...job, attempt: job.attempt + 1 }
      continue
    }
    await remember(decision)
    if (decision.type === 'complete') return call.recorded === 'failures' ? returned : decision.result
    // A verdict, or a result that cannot be stored, throws nothing: its failure is told all the same.
    if ('failure' in outcome) throw thrown ?? new PermanentError(outcome.failure.message)
    throw new RedriveError('CANCELLED', `The call of ${definition.name} was cancelled: ${decision.reason}`)
  }

  /** A call that has begun leaves a record when its service is held before it is done; one that has not leaves none. */
  async function mayCall(service: ServiceState, lease: Lease): Promise<void> {
    try {
      await admit(runtime, service, lease, thrown)
    } catch (error) {
      if (attempts.length > 0) await remember({ type: 'cancel', reason: (error as Error).message })
      throw error
    }
  }

  /** What the ledger cannot take now must not hide the call's own end from its caller. */
  async function remember(decision: Extract<Decision, { type: 'complete' | 'bury' | 'cancel' }>): Promise<void> {
    if (!runtime.record || (decision.type === 'complete' && attempts.length === 0 && call.recorded === 'failures'))
      return
    const endedAt = clock.monotonic()
    const end: InProcessEnd = {
      job: { ...identity, payloadText: call.payloadText, maxAttempts: policy.attempts },
      tookMs: endedAt - startedAt,
      attempts: attempts.map(({ settled, at }) => ({ ...settled, endedMsAgo: endedAt - at })),
      end: ENDS[decision.type],
      attempt: job.attempt,
      ...(decision.type === 'complete'
        ? { resultText: decision.result === null ? undefined : JSON.stringify(decision.result) }
        : { reason: decision.reason }),
    }
    await runtime.record(end).catch(error => {
      announce('error', () => ({ where: `recording a call of ${definition.name}`, error }))
    })
  }
}

const ENDS = { complete: 'completed', bury: 'dead', cancel: 'cancelled' } as const

const firstOf = (identity: JobIdentity, now: number): Job => ({
  ...identity,
  attempt: 1,
  snoozes: 0,
  holds: 0,
  interruptions: 0,
  lost: 0,
  redrives: 0,
  createdAt: now,
  firstClaimedAt: now,
})

function identityOfCall({ definition, about }: InProcessCall, { clock }: InProcessRuntime): JobIdentity {
  return {
    id: newJobId(clock),
    queue: definition.queue,
    name: definition.name,
    priority: about?.priority ?? definition.priority ?? 5,
    ...(definition.service !== undefined && { service: definition.service }),
    ...(about?.tenant !== undefined && { tenant: about.tenant }),
    ...(about?.user !== undefined && { user: about.user }),
    ...(about?.project !== undefined && { project: about.project }),
  }
}

function forward(from: AbortSignal | undefined, to: Abort): () => void {
  if (!from) return () => {}
  const abort = () => to.abort(new RedriveError('CANCEL_REQUESTED', 'its caller gave up waiting'))
  if (from.aborted) abort()
  else from.addEventListener('abort', abort, { once: true })
  return () => from.removeEventListener('abort', abort)
}
