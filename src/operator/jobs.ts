// What a person may do about a single job, wherever it is.
import { RedriveError } from '../domain/errors.js'
import { cap, LIMITS } from '../domain/limits.js'
import type { PolicyOverride } from '../domain/policy.js'
import { type Attempt, attemptsOf } from '../ledger/attempt.js'
import { writeAudit } from '../ledger/audit.js'
import { cancelJob } from '../ledger/cancel.js'
import { findJob, type JobView } from '../ledger/job.js'
import { type Acting, actorOf, type Desk, jobId, notFound } from './context.js'
import { type Explanation, explainJob } from './explain.js'

/** `settings`: what this process says for jobs that say nothing themselves. */
export function jobs({ db }: Desk, settings: PolicyOverride) {
  return {
    /** A job with every attempt on record; undefined when there is none (or it is past its retention). */
    async get(id: string): Promise<(JobView & { attempts: readonly Attempt[] }) | undefined> {
      const found = await findJob(db, jobId(id))
      return found && { ...found, attempts: await attemptsOf(db, found.id) }
    },

    /** Where a job is and why, in words and as data: also of one that has ended, and of an id that nobody knows. */
    explain: async (id: string): Promise<Explanation> => explainJob(db, settings, jobId(id)),

    /** Cancels one that waits; asks one that runs to stop, which its worker hears within a few seconds. */
    async cancel(id: string, acting: Acting = {}): Promise<'cancelled' | 'requested'> {
      const asked = jobId(id)
      const reason = cap(acting.reason ?? `cancelled by ${actorOf(acting)}`, LIMITS.reasonChars)
      const found = await findJob(db, asked)
      if (!found) throw notFound(`job ${id}`)
      const done = await db.transaction(async tx => {
        const result = await cancelJob(tx, asked, reason)
        if (result === 'none')
          throw new RedriveError('NOT_CANCELLABLE', `Job ${id} is ${found.state} and cannot be cancelled`)
        await writeAudit(tx, {
          actor: actorOf(acting),
          action: 'cancel',
          targetType: 'job',
          target: asked,
          before: { state: found.state },
          after: { result },
          reason,
        })
        return result
      })
      return done
    },
  }
}

export type Jobs = ReturnType<typeof jobs>
