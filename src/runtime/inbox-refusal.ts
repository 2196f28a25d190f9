// An entry of an inbox that cannot become a job: a dead letter of kind validation, with the entry as it came.

import { ValidationError } from '../domain/errors.js'
import type { Announce } from '../domain/event.js'
import type { JobId } from '../domain/ids.js'
import { type Job, PRIORITY } from '../domain/job.js'
import { DEFAULT_POLICY } from '../domain/policy.js'
import type { InProcessEnd } from '../ledger/in-process.js'
import { classify } from '../policy/classify.js'
import { decide } from '../policy/decide.js'
import { storable } from '../transport/envelope.js'
import { announceEnd } from './announce-end.js'
import type { AnyJobDefinition } from './definition.js'

export interface Refusal {
  readonly id: JobId
  readonly definition: AnyJobDefinition
  readonly text: string
  readonly error: unknown
}

export interface RefusalDesk {
  readonly announce: Announce
  readonly now: number
  readonly record: (end: InProcessEnd) => Promise<void>
}

export async function bury({ id, definition, text, error }: Refusal, desk: RefusalDesk): Promise<void> {
  const { queue, name, service } = definition
  const priority = definition.priority ?? PRIORITY.default
  const job: Job = {
    ...{ id, queue, name, priority, ...(service !== undefined && { service }) },
    ...{ attempt: 1, snoozes: 0, holds: 0, interruptions: 0, lost: 0, redrives: 0 },
    createdAt: desk.now,
    firstClaimedAt: desk.now,
  }
  const failure = classify(new ValidationError(error instanceof Error ? error.message : String(error)), { job })
  const outcome = { type: 'failed', failure, final: true } as const
  const decision = decide({ outcome, job, policy: DEFAULT_POLICY, now: desk.now, random: () => 0 })
  await desk.record({
    job: { ...job, payloadText: storable(text).payloadText, maxAttempts: 1 },
    tookMs: 0,
    attempts: [{ outcome, decision, number: 1, endedMsAgo: 0 }],
    end: 'dead',
    attempt: 1,
    reason: decision.reason,
  })
  announceEnd(desk.announce, { job, outcome, decision, worker: 'inbox', durationMs: 0, afterwards: true })
}
