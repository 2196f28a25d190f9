// Tells how an attempt ended, once that is written down.
import type { Decision } from '../domain/decision.js'
import type { Announce } from '../domain/event.js'
import type { Job } from '../domain/job.js'
import type { Outcome } from '../domain/outcome.js'
import { identityOf } from './attempt.js'

export interface End {
  readonly job: Job
  readonly outcome: Outcome
  readonly decision: Decision
  readonly worker: string
  readonly durationMs: number
  /** It was decided afterwards: no attempt ended with it. */
  readonly afterwards?: boolean
}

export function announceEnd(announce: Announce, end: End): void {
  if (end.decision.type === 'complete') announce('job.completed', aboutEnd, end)
  else announceOther(announce, end)
}

/** Apart from success: what these remember would else be put aside for each of those as well. */
function announceOther(announce: Announce, end: End): void {
  const { outcome, decision } = end
  const failure = 'failure' in outcome ? outcome.failure : undefined
  const { reason } = decision
  if (failure) announce('job.failed', () => ({ ...aboutEnd(end), failure, decision }))
  switch (decision.type) {
    case 'complete':
      break
    case 'retry':
      if (failure) announce('job.retrying', () => ({ ...aboutEnd(end), failure, delayMs: decision.delayMs, reason }))
      break
    case 'hold':
      announce('job.held', () => ({ ...aboutEnd(end), reason, delayMs: decision.delayMs }))
      break
    case 'return':
      announce('job.returned', () => ({ ...aboutEnd(end), reason, delayMs: decision.delayMs }))
      break
    case 'bury':
      announce('job.dead', () => ({ ...aboutEnd(end), failure, reason }))
      break
    case 'cancel':
      announce('job.cancelled', () => ({ ...aboutEnd(end), reason }))
      break
  }
}

const aboutEnd = ({ job, outcome, worker, durationMs, afterwards = false }: End) => ({
  job: identityOf(job),
  attempt: job.attempt,
  worker,
  durationMs,
  outcome: outcome.type,
  ran: !afterwards && (outcome.type !== 'interrupted' || outcome.started),
  redriven: job.redrives > 0,
})
