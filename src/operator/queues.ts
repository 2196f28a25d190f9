// What a person may do about queues: see them, pause and resume them, set their policy, clean them.
import { invalid } from '../domain/errors.js'
import { LIMITS } from '../domain/limits.js'
import type { PolicyOverride } from '../domain/policy.js'
import { writeAudit } from '../ledger/audit.js'
import { removeDeadLetters } from '../ledger/dead-letter-change.js'
import {
  pauseQueue,
  type QueueSettings,
  type QueueStatistics,
  queueSettings,
  queueStatistics,
  resumeQueue,
  setQueuePolicy,
} from '../ledger/queue.js'
import { freeze } from '../ledger/redrive.js'
import { cleanFinished } from '../ledger/retention.js'
import { wakeChannel } from '../ledger/wake-channel.js'
import { parsePolicy, policyAsJson } from '../policy/effective.js'
import { type Acting, actorOf, type Desk, notFound } from './context.js'

export interface CleanOptions {
  readonly status: 'completed' | 'cancelled' | 'dead'
  /** Only what ended longer ago than this. */
  readonly graceMs: number
  /** Dead letters that nobody has resolved are removed only if this is said. */
  readonly includeOpen?: boolean
}

const BATCH = 1_000

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
      checkQueue(queue)
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

    /** Overrides, at run time, what the code says of this queue's jobs; null takes the override away. */
    async setPolicy(queue: string, policy: PolicyOverride | null, acting: Acting = {}): Promise<number> {
      checkQueue(queue)
      const stored = policy === null ? null : policyAsJson(parsePolicy(policy, `policy of queue ${queue}`))
      return db.transaction(async tx => {
        const [was] = await queueSettings(tx, [queue])
        const version = await setQueuePolicy(tx, queue, stored)
        await writeAudit(tx, { ...entry('set policy', queue, acting), before: was?.policy ?? null, after: stored })
        return version
      })
    },

    /** Removes ended jobs; returns how many. */
    async clean(queue: string, options: CleanOptions, acting: Acting = {}): Promise<{ removed: number }> {
      const { status, graceMs, includeOpen = false } = options
      if (!(Number.isInteger(graceMs) && graceMs >= 0 && graceMs <= LIMITS.delayMs)) {
        throw invalid('graceMs', graceMs, `milliseconds from 0 to ${LIMITS.delayMs}`)
      }
      const removed = await clean(queue, status, graceMs, includeOpen)
      await writeAudit(db, { ...entry('clean', queue, acting), after: { status, graceMs, includeOpen, removed } })
      return { removed }
    },
  }

  async function clean(queue: string, status: CleanOptions['status'], graceMs: number, includeOpen: boolean) {
    switch (status) {
      case 'completed':
      case 'cancelled':
        return cleanFinished(db, queue, status, graceMs, BATCH)
      case 'dead':
        return cleanDead(queue, graceMs, includeOpen)
      default:
        throw invalid('status', status, 'one of completed, cancelled, dead')
    }
  }

  async function cleanDead(queue: string, graceMs: number, includeOpen: boolean): Promise<number> {
    const statuses = ['recovered', 'permanently_failed', ...(includeOpen ? (['pending'] as const) : [])] as const
    let removed = 0
    for (const status of statuses) {
      for (;;) {
        const ids = await freeze(db, { queue, status, diedBeforeMs: graceMs }, BATCH)
        removed += (await removeDeadLetters(db, ids)).length
        if (ids.length < BATCH) break
      }
    }
    return removed
  }
}

export type Queues = ReturnType<typeof queues>

function checkQueue(queue: string): void {
  if (typeof queue !== 'string' || queue.length < 1 || queue.length > LIMITS.nameChars || queue.includes('\0')) {
    throw invalid('queue', queue, `a name of 1 to ${LIMITS.nameChars} characters`)
  }
}

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'queue' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})
