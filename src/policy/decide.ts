// The only place where a job's fate is decided: for workers, for recovery, and for calls awaited in place. Pure: the
// same situation and the same chance give the same decision, with the reason in words a person can read.
import type { Random } from '../domain/clock.js'
import type { Decision } from '../domain/decision.js'
import type { Failure } from '../domain/failure.js'
import type { Job } from '../domain/job.js'
import type { Outcome } from '../domain/outcome.js'
import type { Policy } from '../domain/policy.js'
import { retryDelayMs } from './backoff.js'

export interface Situation {
  readonly outcome: Outcome
  readonly job: Pick<Job, 'attempt' | 'lost' | 'firstClaimedAt'>
  readonly policy: Policy
  /** The time of the outcome, in the same clock as `job.firstClaimedAt`. */
  readonly now: number
  readonly random: Random
}

export function decide(situation: Situation): Decision {
  const { outcome, job } = situation
  switch (outcome.type) {
    case 'succeeded':
      return { type: 'complete', result: outcome.result, reason: `succeeded on attempt ${job.attempt}` }
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
  if (job.attempt >= policy.attempts) return end(situation, `${what}: attempt ${job.attempt} of ${policy.attempts}`)

  const delayMs = nextDelayMs(situation, failure)
  const spentMs = now - job.firstClaimedAt
  if (policy.totalMs !== null && spentMs + delayMs > policy.totalMs) {
    const limit = seconds(policy.totalMs)
    return end(situation, `${what}: the next attempt, in ${seconds(delayMs)}, is past the total limit of ${limit}`)
  }
  const next = `attempt ${job.attempt + 1} of ${policy.attempts} in ${seconds(delayMs)}`
  const asked = failure.retryAfterMs ? ', as the other side asked' : ''
  return { type: 'retry', delayMs, reason: `${what}: ${next}${asked}` }

  function nextDelayMs({ outcome }: Situation, { retryAfterMs }: Failure): number {
    // The first time a worker dies, its jobs are not to blame: they run again at once.
    if (outcome.type === 'lost' && job.lost === 0) return 0
    return retryDelayMs({ policy, attempt: job.attempt, retryAfterMs, random })
  }
}

/** Death, or a plain end where the policy keeps no dead letters. */
function end({ policy }: Situation, reason: string): Decision {
  return policy.deadLetter ? { type: 'bury', reason } : { type: 'cancel', reason: `${reason}; dead letters are off` }
}

function interruption({ started, leaseLost }: Extract<Outcome, { type: 'interrupted' }>): string {
  if (!started) return 'given back before it started'
  return leaseLost ? 'its worker lost its lease' : 'its worker shut down'
}

const seconds = (ms: number): string => (ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`)
const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)
