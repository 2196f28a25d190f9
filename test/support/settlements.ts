// The ends an attempt can have, as its worker would report them: one short name for each, so that a story reads
// "worker.settle(retried(job))". Only tests that own the decision use these; what `decide` would say is tested elsewhere.
import type { Failure } from '../../src/domain/failure.js'
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Json } from '../../src/domain/json.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { aFailure } from './story.js'

type Claim = Pick<ClaimedJob, 'id' | 'lease' | 'receipt'>

const end = ({ id, lease, receipt }: Claim, rest: Pick<Settlement, 'outcome' | 'decision'>): Settlement => ({
  id,
  lease,
  receipt,
  ...rest,
})

export const completed = (job: Claim, result: Json = null): Settlement =>
  end(job, {
    outcome: { type: 'succeeded', result },
    decision: { type: 'complete', result, reason: 'it succeeded' },
  })

export const retried = (job: Claim, delayMs = 0, why: Failure = aFailure()): Settlement =>
  end(job, {
    outcome: { type: 'failed', failure: why },
    decision: { type: 'retry', delayMs, reason: 'it may heal' },
  })

export const snoozed = (job: Claim, delayMs = 0): Settlement =>
  end(job, {
    outcome: { type: 'snoozed', delayMs },
    decision: { type: 'return', cause: 'snooze', delayMs, reason: 'not yet' },
  })

export const interrupted = (job: Claim): Settlement =>
  end(job, {
    outcome: { type: 'interrupted', started: true },
    decision: { type: 'return', cause: 'interruption', delayMs: 0, reason: 'its worker shut down' },
  })

export const givenBack = (job: Claim): Settlement =>
  end(job, {
    outcome: { type: 'interrupted', started: false },
    decision: { type: 'return', cause: 'none', delayMs: 0, reason: 'it never started' },
  })

export const held = (job: Claim, delayMs = 60_000): Settlement =>
  end(job, {
    outcome: { type: 'failed', failure: aFailure() },
    decision: { type: 'hold', delayMs, reason: 'its service is down' },
  })

export const buried = (job: Claim, why: Failure = aFailure({ kind: 'permanent' })): Settlement =>
  end(job, {
    outcome: { type: 'failed', failure: why },
    decision: { type: 'bury', reason: 'no retry can help' },
  })

export const cancelled = (job: Claim, reason = 'not wanted any more'): Settlement =>
  end(job, { outcome: { type: 'cancelled', reason }, decision: { type: 'cancel', reason } })

/** Its worker died; what recovery writes down for it. */
export const lost = (job: Claim, delayMs = 0): Settlement =>
  end(job, {
    outcome: { type: 'lost', failure: aFailure({ kind: 'lost', message: 'its worker died' }) },
    decision: { type: 'retry', delayMs, reason: 'its worker died' },
  })

/** One of each decision, for what must hold whatever was decided. */
export const EVERY_END: Readonly<Record<string, (job: Claim) => Settlement>> = {
  complete: job => completed(job, { ok: true }),
  'retry later': job => retried(job, 5_000),
  'retry at once': job => retried(job),
  snooze: job => snoozed(job, 5_000),
  interruption: interrupted,
  'give back': givenBack,
  hold: job => held(job),
  bury: job => buried(job),
  cancel: job => cancelled(job),
}
