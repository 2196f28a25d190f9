// Ends jobs that wait for a retry which a policy, lowered at run time, no longer allows. By the same decision as any
// other end; only what a person set at run time is asked, because nothing else changes while a job waits.
import type { Decision } from '../domain/decision.js'
import type { Job } from '../domain/job.js'
import { cancelIdle } from '../ledger/cancel.js'
import {
  buryExhausted as bury,
  type LookFrom,
  lastFailures,
  lookForExhausted,
  type Suspect,
} from '../ledger/exhausted.js'
import { decide } from '../policy/decide.js'
import { announceEnd } from './announce-end.js'
import { announcedPolicies } from './announced-policies.js'
import type { Announced } from './policies.js'
import { followPolicies } from './queue-sync.js'
import type { Runtime } from './runtime.js'

const BATCH = 1_000
/** Looked at in one run; the others are due later, and their turn comes. */
const MOST_LOOKS = 100

/** Returns how many were buried. `alive`: called after each batch. */
export async function buryExhausted(runtime: Runtime, worker: string, alive: () => Promise<void>): Promise<number> {
  const { db, policies } = runtime
  await followPolicies(runtime)
  const { mayExhaust } = policies
  if (mayExhaust.queues.length + mayExhaust.jobs.length === 0) return 0
  const announced = await announcedPolicies(runtime)
  let buried = 0
  let from: LookFrom | undefined
  for (let look = 0; look < MOST_LOOKS; look += 1) {
    const { suspects, next } = await lookForExhausted(db, mayExhaust, BATCH, from)
    const ends = suspects.flatMap(suspect => endOf(runtime, suspect, announced(suspect.job)))
    // A policy that keeps no dead letters ends them as cancelled.
    for (const { job, decision } of ends) if (decision.type === 'cancel') await cancelIdle(db, job.id, decision.reason)
    buried += await buryAll(
      runtime,
      worker,
      ends.filter(({ decision }) => decision.type === 'bury'),
    )
    if (!next) break
    from = next
    await alive()
  }
  return buried
}

interface End {
  readonly job: Job
  readonly decision: Decision
}

/** Nothing: it may try again. When, and within which total, was decided when its attempt ended. */
function endOf({ policies, random }: Runtime, { job, failure }: Suspect, announced: Announced | undefined): End[] {
  const policy = policies.forAnnounced(announced, job)
  if (job.attempt < policy.attempts && policy.retryKinds[failure.kind]) return []
  const outcome = { type: 'failed', failure: { ...NOT_READ, ...failure } } as const
  return [{ job, decision: decide({ outcome, job, policy, now: job.firstClaimedAt, random }) }]
}

async function buryAll({ db, announce }: Runtime, worker: string, deaths: readonly End[]): Promise<number> {
  if (deaths.length === 0) return 0
  const ids = deaths.map(({ job }) => job.id)
  const failures = await lastFailures(db, ids)
  const settled = deaths.flatMap(({ job, decision }) => {
    const failure = failures.get(job.id)
    const outcome = failure && ({ type: 'failed', failure } as const)
    return outcome ? [{ id: job.id, attempt: job.attempt, job, outcome, decision }] : []
  })
  const buried = new Set(await bury(db, settled))
  for (const { id, job, outcome, decision } of settled) {
    if (buried.has(id)) announceEnd(announce, { job, outcome, decision, worker, durationMs: 0, afterwards: true })
  }
  return buried.size
}

/** The rest of a failure, which no decision looks at. */
const NOT_READ = { type: '', message: '', causes: [], fingerprint: '' } as const
