// What a person may do about queues: see them, pause and resume them, clean them.
import { invalid } from '../domain/errors.js'
import type { JobId } from '../domain/ids.js'
import { LIMITS } from '../domain/limits.js'
import { checkName } from '../domain/names.js'
import { writeAudit } from '../ledger/audit.js'
import type { Queryable } from '../ledger/database.js'
import { removeDeadLetters } from '../ledger/dead-letter-change.js'
import {
  pauseQueue,
  type QueueSettings,
  type QueueStatistics,
  queueSettings,
  queueStatistics,
  resumeQueue,
} from '../ledger/queue.js'
import { freeze } from '../ledger/redrive.js'
import { cleanFinished } from '../ledger/retention.js'
import { wakeChannel } from '../ledger/wake-channel.js'
import { type Acting, actorOf, type Desk, notFound } from './context.js'

export interface CleanOptions {
  readonly status: 'completed' | 'cancelled' | 'dead'
  /** Only what ended longer ago than this. */
  readonly graceMs: number
  /** Dead letters that nobody has resolved are removed only if this is said. */
  readonly includeOpen?: boolean
}

const BATCH = 1_000
/** Of the history, at a time. */
const LOOKED_AT = 5_000

export function queues(desk: Desk) {
  const { db } = desk

  return {
    /** How many jobs each queue has, by state. */
    statistics: (): Promise<QueueStatistics[]> => queueStatistics(db),

    async get(queue: string): Promise<QueueSettings> {
      const [settings] = await queueSettings(db, [queue])
      if (!settings) throw notFound(`queue ${queue}`)
      return settings
    },

    /** Running jobs finish, none starts. */
    async pause(queue: string, acting: Acting = {}): Promise<void> {
      checkName('queue', queue)
      await db.transaction(async tx => {
        await pauseQueue(tx, queue, actorOf(acting))
        await writeAudit(tx, { ...entry('pause', queue, acting), after: { paused: true } })
      })
    },

    async resume(queue: string, acting: Acting = {}): Promise<void> {
      await db.transaction(async tx => {
        if (!(await resumeQueue(tx, queue, wakeChannel(db)))) throw notFound(`queue ${queue}`)
        await writeAudit(tx, { ...entry('resume', queue, acting), after: { paused: false } })
      })
      desk.wake(queue)
    },

    /** Removes ended jobs; returns how many. */
    async clean(queue: string, options: CleanOptions, acting: Acting = {}): Promise<{ removed: number }> {
      const { status, graceMs, includeOpen = false } = options
      if (!(Number.isInteger(graceMs) && graceMs >= 0 && graceMs <= LIMITS.delayMs)) {
        throw invalid('graceMs', graceMs, `milliseconds from 0 to ${LIMITS.delayMs}`)
      }
      const removeBatch = remover(queue, { status, graceMs, includeOpen })
      let removed = 0
      for (;;) {
        // Each batch with its audit row: whatever happens in between, nothing is gone without one (invariant 8).
        const batch = await db.transaction(async tx => {
          const done = await removeBatch(tx)
          const after = { status, graceMs, includeOpen, removed: done.removed }
          if (done.removed > 0) await writeAudit(tx, { ...entry('clean', queue, acting), after })
          return done
        })
        removed += batch.removed
        if (!batch.more) return { removed }
      }
    },
  }
}

type RemoveBatch = (tx: Queryable) => Promise<{ readonly removed: number; readonly more: boolean }>

/** Removes one batch of ended jobs; returns how many, and whether there may be more. */
function remover(queue: string, { status, graceMs, includeOpen }: Required<CleanOptions>): RemoveBatch {
  switch (status) {
    case 'completed':
    case 'cancelled': {
      let after: JobId | undefined
      return async tx => {
        const { removed, next } = await cleanFinished(tx, queue, status, graceMs, LOOKED_AT, after)
        after = next
        return { removed, more: next !== undefined }
      }
    }
    case 'dead':
      return async tx => {
        const statuses = includeOpen ? [...RESOLVED, 'pending' as const] : RESOLVED
        for (const closed of statuses) {
          const ids = await freeze(tx, { queue, status: closed, diedBeforeMs: graceMs }, BATCH)
          if (ids.length > 0) return { removed: (await removeDeadLetters(tx, ids)).length, more: true }
        }
        return { removed: 0, more: false }
      }
    default:
      throw invalid('status', status, 'one of completed, cancelled, dead')
  }
}

const RESOLVED = ['recovered', 'permanently_failed'] as const

export type Queues = ReturnType<typeof queues>

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'queue' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})
