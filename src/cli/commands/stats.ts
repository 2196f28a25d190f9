// `redrive stats`: every queue by state, and what became of its dead letters.
import type { DeadLetterSummary, QueueStatistics, Statistics } from '../answers.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'

export const stats: Register = (program, cli) => {
  program
    .command('stats')
    .description('every queue by state, and what became of its dead letters')
    .addHelpText('after', examples('redrive stats', 'redrive stats -o json | jq .queueStatistics'))
    .action(async () => {
      const { client, output, host } = cli()
      const answer = await (await client()).get<Statistics>('/statistics')
      const { queueStatistics: queues, deadLetterQueueSummary: letters } = answer
      if (queues.length === 0 && output.format === 'table') {
        return output.say('There are no queues yet: a worker, or `redrive enqueue`, makes the first one.')
      }
      output.one(answer, () => [
        ...output.table(queues, queueColumns(host.clock.now())),
        ...(letters.length === 0 ? [] : ['', ...output.table(letters, LETTERS)]),
      ])
    })
}

const queueColumns = (now: number): Column<QueueStatistics>[] => [
  { title: 'QUEUE', value: row => row.queue_name, long: true },
  { title: 'WAITING', value: row => row.waiting_count, right: true },
  { title: 'ACTIVE', value: row => row.active_count, right: true },
  { title: 'RETRYING', value: row => row.retryable_count, right: true },
  { title: 'SCHEDULED', value: row => row.scheduled_count, right: true, spare: true },
  { title: 'HELD', value: row => row.held_count, right: true, spare: true },
  { title: 'COMPLETED', value: row => row.completed_count, right: true },
  {
    title: 'DEAD',
    value: row => row.failed_count,
    right: true,
    paint: (row, style) => (row.failed_count > 0 ? style.red : undefined),
  },
  {
    title: 'OLDEST',
    value: row => (row.oldest_waiting_at === null ? undefined : ago(row.oldest_waiting_at, now)),
    right: true,
  },
  { title: '', value: row => (row.paused ? 'paused' : ''), paint: (_, style) => style.yellow },
]

const LETTERS: readonly Column<DeadLetterSummary>[] = [
  { title: 'DEAD LETTERS OF', value: row => row.queue_name, long: true },
  { title: 'TOTAL', value: row => row.total_failed_jobs, right: true },
  {
    title: 'OPEN',
    value: row => row.pending_recovery,
    right: true,
    paint: (row, style) => (row.pending_recovery > 0 ? style.red : undefined),
  },
  { title: 'REDRIVING', value: row => row.redriving, right: true },
  { title: 'RECOVERED', value: row => row.recovered, right: true },
  { title: 'FAILED FOR GOOD', value: row => row.permanently_failed, right: true },
]
