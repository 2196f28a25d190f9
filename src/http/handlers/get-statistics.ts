// What each queue holds, and what became of what died, under the names that the SQL views have.
import type { Call } from '../route.js'
import { letterCounts, queueStatisticsRows } from './queue-stats.js'

export const getStatistics = (call: Call) => statisticsOf(call)

export async function statisticsOf(call: Pick<Call, 'backend' | 'cached'>) {
  const [queueStatistics, counts] = await Promise.all([queueStatisticsRows(call), letterCounts(call)])
  const queues = [...new Set(counts.map(({ queue }) => queue))]
  const deadLetterQueueSummary = queues.map(queue => {
    const sum = (status?: string) =>
      counts
        .filter(count => count.queue === queue && (status === undefined || count.status === status))
        .reduce((total, { count }) => total + count, 0)
    return {
      queue_name: queue,
      total_failed_jobs: sum(),
      pending_recovery: sum('pending'),
      redriving: sum('redriving'),
      recovered: sum('recovered'),
      permanently_failed: sum('permanently_failed'),
    }
  })
  return { queueStatistics, deadLetterQueueSummary }
}
