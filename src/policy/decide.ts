// The only place where a job's fate is decided: for workers, for recovery, and for calls awaited in place. Pure: the
// same situation and the same chance give the same decision, with the reason in words a person can read.
import type { Random } from '../domain/clock.js'
import type { Decision } from '../domain/decision.js'
import type { Failure } from '../domain/failure.js'
import type { Job } from '../domain/job.js'
import type { Hold, Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import { retryDelayMs } from './backoff.js'
import { type BreakerView, speaksOf } from './breaker.js'
import { shortTime as seconds, times } from './say.js'

export interface Situation {
  readonly outcome: Outcome
  /** `payloadText`: for a custom backoff that looks at the payload. */
  readonly job: Pick<Job, 'attempt' | 'lost' | 'firstClaimedAt'> & { readonly payloadText?: string }
  readonly policy: Policy
  /** The time of the outcome, in the same clock as `job.firstClaimedAt`. */
  readonly now: number
  readonly random: Random
  /** What is known of the service it calls. */
  readonly breaker?: BreakerView | undefined
  /** How long the retry budget of that service makes another retry wait; 0: not at all. */
  readonly budget?: { readonly waitMs: number } | undefined
}

export function decide(situation: Situation): Decision {
  const { outcome, job } = situation
  switch (outcome.type) {
    case 'succeeded':
      if (outcome.result === null && job.attempt === 1) return DONE_AT_ONCE
      return { type: 'complete', result: outcome.result, reason: successOn(job.attempt) }
    case 'cancelled':
      return { type: 'cancel', reason: outcome.reason }
    case 'snoozed':
      return {
        type: 'return',
        cause: 'snooze',
        delayMs: outcome.delayMs,
        reason: `snoozed by its handler for ${seconds(outcome.delayMs)}; no attempt spent`,
      }
    case 'interrupted':
      if (outcome.hold) return held(outcome.hold)
      return {
        type: 'return',
        cause: outcome.started ? 'interruption' : 'none',
        delayMs: 0,
        reason: `${interruption(outcome)}; no attempt spent`,
      }
    case 'lost':
      return afterLoss(situation, outcome.failure)
    case 'failed':
      if (outcome.final)
        return end(situation, `no retry can help: ${outcome.failure.because}: ${outcome.failure.message}`)
      return afterFailure(situation, outcome.failure)
    case 'timed_out':
      return afterFailure(situation, outcome.failure)
  }
}

/** Most succeed at once: what is said of them is said once. */
const AT_ONCE = 'succeeded on attempt 1'
const DONE_AT_ONCE: Decision = { type: 'complete', result: null, reason: AT_ONCE }
const successOn = (attempt: number): string => (attempt === 1 ? AT_ONCE : `succeeded on attempt ${attempt}`)

function afterLoss(situation: Situation, failure: Failure): Decision {
  const { job, policy } = situation
  const losses = job.lost + 1
  if (losses >= policy.lostLimit) {
    return end(situation, `poison: its worker died ${times(losses)} while it ran`)
  }
  return afterFailure(situation, failure)
}

function afterFailure(situation: Situation, failure: Failure): Decision {
  const { job, policy, now, random } = situation
  const what = `${failure.kind} (${failure.because})`
  if (!policy.retryKinds[failure.kind]) return end(situation, `${what}: failures of this kind are not retried`)
  const exhausted = job.attempt >= policy.attempts
  if (situation.breaker && isServices(situation.breaker, failure, exhausted)) return heldBack(situation, what)
  if (exhausted) return end(situation, `${what}: attempt ${job.attempt} of ${policy.attempts}`)

  const delayMs = nextDelayMs(situation, failure)
  const spentMs = now - job.firstClaimedAt
  if (policy.totalMs !== null && spentMs + delayMs > policy.totalMs) {
    const limit = seconds(policy.totalMs)
    return end(situation, `${what}: the next attempt, in ${seconds(delayMs)}, is past the total limit of ${limit}`)
  }
  const surplus = overBudget(situation, delayMs)
  if (surplus) return surplus
  const next = `attempt ${job.attempt + 1} of ${policy.attempts} in ${seconds(delayMs)}`
  const asked = failure.retryAfterMs ? ', as the other side asked' : ''
  return { type: 'retry', delayMs, reason: `${what}: ${next}${asked}` }

  function nextDelayMs({ outcome }: Situation, { retryAfterMs }: Failure): number {
    // The first time a worker dies, its jobs are not to blame: they run again at once.
    if (outcome.type === 'lost' && job.lost === 0) return 0
    return retryDelayMs({ policy, attempt: job.attempt, retryAfterMs, payloadText: job.payloadText, random })
  }
}

/** No job dies of an outage: what fails while its service does is the service's failure, not the job's. */
const isServices = (breaker: BreakerView, failure: Failure, exhausted: boolean): boolean =>
  (breaker.holding || (exhausted && breaker.suspected)) && speaksOf(failure, breaker.service, breaker.kinds)

function heldBack(situation: Situation, what: string): Decision {
  const { job, policy, now, random } = situation
  const { service, state, holding, lookInMs } = situation.breaker as BreakerView
  // Spread: what was held together must not come back together (pitfall 6).
  const delayMs = Math.round(lookInMs + random() * Math.max(1_000, lookInMs / 4))
  if (policy.totalMs !== null && now - job.firstClaimedAt + delayMs > policy.totalMs) {
    const limit = seconds(policy.totalMs)
    return end(
      situation,
      `${what}: ${service} is looked at again in ${seconds(delayMs)}, past the total limit of ${limit}`,
    )
  }
  const why = holding ? STANDING[state] : 'fails for other jobs as well'
  return { type: 'hold', delayMs, reason: `${what}: ${service} ${why}; held for ${seconds(delayMs)}, no attempt spent` }
}

const STANDING: Readonly<Record<BreakerView['state'], string>> = {
  open: 'is down and its breaker open',
  half_open: 'is being tried out',
  closed: 'has only just come back',
  isolated: 'was isolated by a person',
}

/** A retry beyond the budget keeps its turn; it only has to wait longer for it. */
function overBudget({ budget, job, policy, now }: Situation, delayMs: number): Decision | undefined {
  if (!budget || budget.waitMs <= delayMs) return undefined
  // Past its total limit no retry would come: then it is better to come early than never.
  const leftMs = policy.totalMs === null ? budget.waitMs : policy.totalMs - (now - job.firstClaimedAt)
  const waitMs = Math.round(Math.min(budget.waitMs, leftMs))
  const reason = `the retry budget of its service is spent: attempt ${job.attempt + 1} of ${policy.attempts} in ${seconds(waitMs)}`
  return { type: 'hold', delayMs: waitMs, spent: true, reason }
}

/** Death, or a plain end where the policy keeps no dead letters. */
function end({ policy }: Situation, reason: string): Decision {
  return policy.deadLetter ? { type: 'bury', reason } : { type: 'cancel', reason: `${reason}; dead letters are off` }
}

function interruption({ started, leaseLost }: Extract<Outcome, { type: 'interrupted' }>): string {
  if (!started) return 'given back before it started'
  return leaseLost ? 'its worker lost its lease' : 'its worker shut down'
}

/** Let go when its turn comes; by itself only if nobody does that, so a little later. */
function held({ by, delayMs, reason }: Hold): Decision {
  const turn = `its turn is in about ${seconds(delayMs)}; no attempt spent`
  return { type: 'hold', heldBy: by, delayMs: delayMs * 1.1 + 1_000, reason: `${reason}: ${turn}` }
}
