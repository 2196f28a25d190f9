// What the ledger holds, for metrics: read by one process of the fleet, so that a number is there once however many are asked.
import { randomUUID } from 'node:crypto'
import type { BreakerState } from '../domain/breaker.js'
import { breakers } from '../ledger/breaker.js'
import { type DeadLetterCount, deadLetterCounts } from '../ledger/dead-letter-count.js'
import { leaveDuty, takeDuty } from '../ledger/duty.js'
import { type QueueStatistics, queueStatistics } from '../ledger/queue.js'
import { databaseNow } from '../ledger/statistics.js'
import { workersByQueue } from '../ledger/worker-count.js'
import type { Desk } from './context.js'

export interface GaugeReading {
  /** By the database's clock. */
  readonly now: Date
  readonly queues: readonly QueueStatistics[]
  readonly deadLetters: readonly DeadLetterCount[]
  readonly breakers: readonly { readonly service: string; readonly state: BreakerState }[]
  readonly workers: readonly { readonly queue: string; readonly workers: number }[]
}

const DUTY = 'metrics'
const MOST_QUEUES = 2_000

export function gauges({ db }: Desk) {
  // Names of processes may repeat: in containers, all are process 1 of something.
  const me = randomUUID()
  let mine = false
  return {
    /** Undefined: another process is asked for these, and was within `forMs`. */
    async read(forMs: number): Promise<GaugeReading | undefined> {
      mine = await takeDuty(db, DUTY, me, forMs)
      if (!mine) return undefined
      const [now, queues, deadLetters, { breakers: known }, workers] = await Promise.all([
        databaseNow(db),
        queueStatistics(db),
        deadLetterCounts(db),
        breakers(db),
        workersByQueue(db, MOST_QUEUES),
      ])
      return { now, queues, deadLetters, breakers: known.map(({ service, state }) => ({ service, state })), workers }
    },

    /** Another process may be asked from now on. */
    async leave(): Promise<void> {
      if (mine) await leaveDuty(db, DUTY, me)
      mine = false
    },
  }
}

export type GaugeDesk = ReturnType<typeof gauges>
