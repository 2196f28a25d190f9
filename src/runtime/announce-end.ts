// Tells how an attempt ended, once that is written down.
import type { Decision } from '../domain/decision.js'
import type { Announce } from '../domain/event.js'
import type { Job } from '../domain/job.js'
import type { Outcome } from '../domain/outcome.js'
import { identityOf } from './attempt.js'

export interface End {
  readonly outcome: Outcome
  readonly decision: Decision
  readonly worker: string
  readonly durationMs: number
  /** It was decided afterwards: no attempt ended with it. */
  readonly afterwards?: boolean
}

export function announceEnd(announce: Announce, job: Job, end: End): void {
  const { outcome, decision, worker, durationMs, afterwards = false } = end
  const about = () => ({
    job: identityOf(job),
    attempt: job.attempt,
    worker,
    durationMs,
    outcome: outcome.type,
    ran: !afterwards && (outcome.type !== 'interrupted' || outcome.started),
    redriven: job.redrives > 0,
  })
  const failure = 'failure' in outcome ? outcome.failure : undefined
  const { reason } = decision
  if (failure) announce('job.failed', () => ({ ...about(), failure, decision }))
  switch (decision.type) {
    case 'complete':
      announce('job.completed', about)
      break
    case 'retry':
      if (failure) announce('job.retrying', () => ({ ...about(), failure, delayMs: decision.delayMs, reason }))
      break
    case 'hold':
      announce('job.held', () => ({ ...about(), reason, delayMs: decision.delayMs }))
      break
    case 'return':
      announce('job.returned', () => ({ ...about(), reason, delayMs: decision.delayMs }))
      break
    case 'bury':
      announce('job.dead', () => ({ ...about(), failure, reason }))
      break
    case 'cancel':
      announce('job.cancelled', () => ({ ...about(), reason }))
      break
  }
}
