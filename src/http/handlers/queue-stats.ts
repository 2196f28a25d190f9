// The queues' counts, as the view queue_statistics names them.
import type { Call } from '../route.js'

type Counting = Pick<Call, 'backend' | 'cached'>

/** Of each queue, status and kind. */
export const letterCounts = ({ backend, cached }: Counting) =>
  cached('dead letters', () => backend.operator.deadLetters.statistics())

export const queueCounts = ({ backend, cached }: Counting) =>
  cached('queues', () => backend.operator.queues.statistics())

export const queueStatisticsRows = async (call: Counting) =>
  (await queueCounts(call)).map(row => ({
    queue_name: row.queue,
    waiting_count: row.waiting,
    active_count: row.active,
    completed_count: row.completed,
    failed_count: row.dead,
    retryable_count: row.retrying,
    scheduled_count: row.scheduled,
    held_count: row.held,
    cancelled_count: row.cancelled,
    oldest_waiting_at: row.oldestWaitingAt,
    paused: row.paused,
  }))

export const getQueueStats = async (call: Call) => ({ queueStatistics: await queueStatisticsRows(call) })
