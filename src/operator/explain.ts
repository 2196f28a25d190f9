// Gathers what is known of a job and has it explained.
import type { JobId } from '../domain/ids.js'
import type { State } from '../domain/lifecycle.js'
import type { PolicyOverride } from '../domain/policy.js'
import { readAudit } from '../ledger/audit.js'
import { breakers } from '../ledger/breaker.js'
import type { Database } from '../ledger/database.js'
import { getDeadLetter } from '../ledger/dead-letter.js'
import { findJob, type JobView } from '../ledger/job.js'
import { AHEAD_UP_TO, type AttemptBrief, recentAttempts, surroundings } from '../ledger/job-evidence.js'
import { queueSettings } from '../ledger/queue.js'
import { allowance } from '../policy/breaker.js'
import { type Explained, explain, explainUnknown, type JobEvidence } from '../policy/explain.js'
import { effectiveService, parseService } from '../policy/service-settings.js'
import { effectiveFor, type PolicyAnswer } from './policies.js'

export interface Explanation {
  readonly id: JobId
  readonly state: State | 'unknown'
  /** All of it in words. */
  readonly text: string
  readonly sentences: readonly string[]
  /** What holds it up, if anything does. */
  readonly obstacle?: NonNullable<Explained['obstacle']>
  /** What happens next, and when, if that is known. */
  readonly next: { readonly what: Explained['next']['what']; readonly at?: Date }
  readonly job?: JobView
  readonly attempts?: { readonly made: number; readonly allowed: number; readonly left: number }
  readonly lastFailure?: Omit<AttemptBrief, 'at'> & { readonly at: Date }
  readonly policy?: PolicyAnswer
  readonly service?: {
    readonly name: string
    readonly state: NonNullable<JobEvidence['breaker']>['state']
    readonly since: Date
    readonly openUntil: Date | null
    readonly reason: string
  }
  readonly rateLimit?: { readonly name: string; readonly key: string }
  readonly queue?: { readonly paused: boolean; readonly pausedBy?: string; readonly pausedAt?: Date }
  /** Live workers of its queue. */
  readonly workers?: number
}

const LOOKED_BACK = 50

export async function explainJob(db: Database, settings: PolicyOverride, id: JobId): Promise<Explanation> {
  const job = await findJob(db, id)
  if (!job) return unknown(db, id)
  const { queue, name, maxAttempts } = job
  const [around, recent, policy, [line], breaker, letter] = await Promise.all([
    surroundings(db, job),
    recentAttempts(db, id, LOOKED_BACK),
    effectiveFor(db, settings, { queue, job: name, ...(maxAttempts !== undefined && { maxAttempts }) }),
    queueSettings(db, [queue]),
    job.service === undefined ? undefined : breakerOf(db, job.service),
    job.state === 'dead' ? getDeadLetter(db, id) : undefined,
  ])
  const last = recent.find(({ round }) => round === job.redrives) ?? recent[0]
  const failure = recent.find(attempt => attempt.kind !== undefined)
  const evidence: JobEvidence = {
    ...around,
    aheadUpTo: AHEAD_UP_TO,
    job: timesOf(job),
    policy: policy.policy,
    sources: policy.sources,
    set: setOf(policy),
    ...(last && { last }),
    ...(failure?.kind !== undefined && { failure: { ...failure, kind: failure.kind } }),
    ...(line?.pausedAt && { paused: { by: line.pausedBy ?? 'somebody', at: line.pausedAt.getTime() } }),
    ...(breaker && { breaker }),
    ...(letter && { deadLetter: letter }),
  }
  const { sentences, obstacle, next } = explain(evidence)
  const { attempts: allowed } = policy.policy
  return {
    id,
    state: job.state,
    text: sentences.join(' '),
    sentences,
    ...(obstacle && { obstacle }),
    next: { what: next.what, ...(next.at !== undefined && { at: new Date(next.at) }) },
    job,
    attempts: { made: job.attempt, allowed, left: Math.max(0, allowed - job.attempt) },
    policy,
    ...(failure && { lastFailure: { ...failure, at: new Date(failure.at) } }),
    ...(breaker && { service: serviceOf(breaker) }),
    ...(around.rateLimit && { rateLimit: around.rateLimit }),
    queue: {
      paused: line?.paused ?? false,
      ...(line?.pausedBy !== undefined && { pausedBy: line.pausedBy }),
      ...(line?.pausedAt && { pausedAt: line.pausedAt }),
    },
    workers: around.workers,
  }
}

async function unknown(db: Database, id: JobId): Promise<Explanation> {
  const { readAt: now } = await breakers(db, [])
  const [entry] = [
    ...(await readAudit(db, { targetType: 'dead_letter', target: id, limit: 1 })),
    ...(await readAudit(db, { targetType: 'job', target: id, limit: 1 })),
  ]
  const removed = entry && { by: entry.actor, at: entry.at.getTime(), action: entry.action }
  const madeAt = timeIn(id)
  const sentences = explainUnknown(id, {
    now,
    ...(removed && { removed }),
    ...(madeAt !== undefined && { madeAt }),
  })
  return { id, state: 'unknown', text: sentences.join(' '), sentences, next: { what: 'nothing' } }
}

/** A UUIDv7 begins with the time it was made at. */
const timeIn = (id: JobId): number | undefined =>
  id[14] === '7' ? Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16) : undefined

async function breakerOf(db: Database, service: string): Promise<JobEvidence['breaker'] | undefined> {
  const { breakers: rows, readAt } = await breakers(db, [service])
  const [row] = rows
  if (!row) return undefined
  const set = row.settings === null ? undefined : parseService(row.settings, `settings of ${service}`)
  // What the code says of services is not known here; a shadow says so itself.
  const settings = effectiveService(set)
  const free =
    (row.shadow && row.state !== 'isolated') || allowance(row, settings.breaker, readAt) === Number.POSITIVE_INFINITY
  const { state, since, openUntil, reason, changedBy } = row
  return { service, state, since, openUntil, reason, by: changedBy, free }
}

const serviceOf = ({ service, state, since, openUntil, reason }: NonNullable<JobEvidence['breaker']>) => ({
  name: service,
  state,
  since: new Date(since),
  openUntil: openUntil === null ? null : new Date(openUntil),
  reason,
})

const timesOf = ({ createdAt, runAt, claimedAt, finishedAt, ...job }: JobView): JobEvidence['job'] => ({
  ...job,
  createdAt: createdAt.getTime(),
  ...(runAt && { runAt: runAt.getTime() }),
  ...(claimedAt && { claimedAt: claimedAt.getTime() }),
  ...(finishedAt && { finishedAt: finishedAt.getTime() }),
})

function setOf({ set }: PolicyAnswer): JobEvidence['set'] {
  const { queue, job } = set
  const told = ({ version, setBy, setAt }: NonNullable<typeof queue>) => ({ version, by: setBy, at: setAt.getTime() })
  return { ...(queue && { queue: told(queue) }), ...(job && { job: told(job) }) }
}
