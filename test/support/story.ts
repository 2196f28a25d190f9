// The small steps that stories about the ledger are made of: a job, a session, a failure, the end of an attempt.
import type { Decision } from '../../src/domain/decision.js'
import type { Failure } from '../../src/domain/failure.js'
import { type JobId, newJobId, type SessionId } from '../../src/domain/ids.js'
import type { ClaimedJob, NewJob } from '../../src/domain/job.js'
import type { Outcome } from '../../src/domain/outcome.js'
import type { Settlement } from '../../src/domain/settlement.js'
import type { AuditEntry } from '../../src/ledger/audit.js'
import { claim, readPayloads } from '../../src/ledger/claim.js'
import type { Database } from '../../src/ledger/database.js'
import { sendBack } from '../../src/ledger/redrive.js'
import { openSession } from '../../src/ledger/session.js'

export const aJob = (job: Partial<NewJob> = {}): NewJob => ({
  id: newJobId(),
  queue: 'mail',
  name: 'send',
  priority: 5,
  payloadText: '{}',
  ...job,
})

export const aSession = (db: Database, leaseMs = 60_000): Promise<SessionId> =>
  openSession(db, {
    worker: 'worker-1',
    host: 'test',
    pid: 1,
    version: null,
    queues: ['mail'],
    concurrency: 10,
    leaseMs,
  })

export const aFailure = (failure: Partial<Failure> = {}): Failure => ({
  kind: 'transient',
  because: 'HTTP status 503',
  type: 'HttpError',
  message: 'the mail server is busy',
  causes: [],
  fingerprint: 'v1:busy',
  ...failure,
})

/** Claimed, and with their payloads, wherever these lie. */
export async function withPayloads(db: Database, jobs: Promise<ClaimedJob[]>): Promise<ClaimedJob[]> {
  const claimed = await jobs
  await readPayloads(
    db,
    claimed.filter(({ apart }) => apart),
  )
  return claimed
}

/** Takes jobs of one lane; all that are waiting unless told otherwise. */
export const take = (db: Database, session: SessionId, limit = 1_000, queue = 'mail', name = 'send') =>
  withPayloads(db, claim(db, session, [{ queue, name, limit }], limit))

type Held = Pick<ClaimedJob, 'id' | 'lease' | 'receipt'>

export const ended = ({ id, lease, receipt }: Held, outcome: Outcome, decision: Decision): Settlement => ({
  id,
  lease,
  receipt,
  outcome,
  decision,
})

export const completed = (job: Held, result: Extract<Decision, { type: 'complete' }>['result'] = null) =>
  ended(job, { type: 'succeeded', result }, { type: 'complete', result, reason: 'succeeded on attempt 1' })

export const retried = (job: Held, delayMs = 1_000, failure = aFailure()) =>
  ended(job, { type: 'failed', failure }, { type: 'retry', delayMs, reason: 'transient: attempt 2 of 3 in 1 s' })

export const buried = (job: Held, failure = aFailure(), reason = 'transient: attempt 3 of 3') =>
  ended(job, { type: 'failed', failure }, { type: 'bury', reason })

export const cancelled = (job: Held, reason = 'no longer wanted') =>
  ended(job, { type: 'cancelled', reason }, { type: 'cancel', reason })

const BULK: AuditEntry = { actor: 'ada', action: 'retry many', targetType: 'dead_letter', target: 'all' }

/** Letters without a unique key, as a batch of a frozen set. */
export const sentBack = (db: Database, ids: readonly JobId[]) =>
  sendBack(db, { ids: ids.join(','), places: `{${ids.map((_, n) => n + 1)}}`, keyed: false }, null, BULK)
