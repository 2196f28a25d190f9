// Finds jobs whose worker is gone and decides what becomes of them, by the same rules as any other end. Touches only
// jobs of sessions that have ended: a session that is renewed is never rescued from, however long a job runs (pitfall 2).
import type { Outcome } from '../domain/outcome.js'
import type { Settlement } from '../domain/settlement.js'
import { type Orphan, orphans } from '../ledger/claim.js'
import { clearSessions, lapseSessions, sessionsToSearch } from '../ledger/session.js'
import { SHARED_SHARD } from '../ledger/settle/tally.js'
import { recordStale, settle } from '../ledger/settle.js'
import { classify } from '../policy/classify.js'
import { decide } from '../policy/decide.js'
import { announcedPolicies } from './announced-policies.js'
import { identityOf } from './attempt.js'
import { followPolicies } from './queue-sync.js'
import type { Runtime } from './runtime.js'

const BATCH = 500
/** A look goes through everything in line, so it brings many at once. */
const LOOK = 5_000

export interface Rescue {
  readonly rescued: number
  readonly buried: number
}

/**
 * Ends lapsed sessions and settles their jobs. `thorough`: also those of sessions that were ended by a process which died before it
 * could settle them. `nextLapseInMs`: when another session would lapse; undefined where there is none.
 */
export async function rescue(
  runtime: Runtime,
  { thorough = true }: { readonly thorough?: boolean } = {},
): Promise<Rescue & { readonly nextLapseInMs: number | undefined }> {
  const { lapsed, nextInMs } = await lapseSessions(runtime.db)
  const nothing = { rescued: 0, buried: 0 }
  return { ...(thorough || lapsed.length > 0 ? await rescueEnded(runtime) : nothing), nextLapseInMs: nextInMs }
}

async function rescueEnded(runtime: Runtime): Promise<Rescue> {
  const ended = await sessionsToSearch(runtime.db)
  let rescued = 0
  let buried = 0
  if (ended.length === 0) return { rescued, buried }
  for (;;) {
    const found = await orphans(runtime.db, ended, LOOK)
    if (found.length === 0) {
      await clearSessions(runtime.db, ended)
      return { rescued, buried }
    }
    let settledNow = 0
    for (let from = 0; from < found.length; from += BATCH) {
      const settled = await settleOrphans(runtime, found.slice(from, from + BATCH))
      settledNow += settled.length
      buried += settled.filter(({ decision }) => decision.type === 'bury').length
    }
    rescued += settledNow
    // Somebody else settles them, or nobody can: not for us to turn round and round.
    if (settledNow === 0) return { rescued, buried }
  }
}

async function settleOrphans(runtime: Runtime, found: readonly Orphan[]): Promise<Settlement[]> {
  const { db, transport, announce, policies, random } = runtime
  await followPolicies(runtime)
  const announced = await announcedPolicies(runtime)
  const batch = found.map((job): Settlement => {
    const outcome = outcomeOf(job)
    const policy = policies.forAnnounced(announced(job), job)
    return {
      id: job.id,
      lease: job.lease,
      outcome,
      decision: decide({ outcome, job, policy, now: job.claimedAt, random }),
    }
  })
  const refused = new Set(await settle(db, batch, SHARED_SHARD))
  if (refused.size > 0) await recordStale(db, [...refused])
  const settled = batch.filter(settlement => !refused.has(settlement))
  for (const [index, settlement] of batch.entries()) {
    const job = found[index]
    if (!job || refused.has(settlement)) continue
    const { worker, attempt } = job
    const { outcome, decision } = settlement
    announce('job.rescued', () => ({ job: identityOf(job), worker, outcome: outcome.type, decision }))
    if (decision.type === 'bury') {
      const failure = 'failure' in outcome ? outcome.failure : undefined
      const { reason } = decision
      // How long it ran nobody knows; that it is dead must be heard all the same (pitfall 8).
      announce('job.dead', () => ({
        job: identityOf(job),
        attempt,
        worker,
        durationMs: 0,
        outcome: outcome.type,
        ran: false,
        redriven: job.redrives > 0,
        failure,
        reason,
      }))
    }
    transport.wake(job.queue)
  }
  return settled
}

/** A suspect whose start is not on record surely never ran: it is given back, not blamed. */
function outcomeOf(job: Orphan): Outcome {
  if (!job.mayHaveRun) return { type: 'interrupted', started: false }
  const died = Object.assign(
    new Error(`its worker (${job.worker}) died or lost its lease during attempt ${job.attempt}`),
    {
      name: 'WorkerLost',
      stack: undefined,
    },
  )
  const failure = classify(died, {
    job: identityOf(job),
    classifier: () => ({ kind: 'lost', because: 'its worker is gone' }),
  })
  return { type: 'lost', failure }
}
