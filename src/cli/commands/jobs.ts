// `redrive jobs`: single jobs, wherever they are.
import { Option } from 'commander'
import { STATES } from '../../domain/lifecycle.js'
import type { Cancelled, DeadLetter, Job, JobBrief } from '../answers.js'
import { id, wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { gather, sayMore } from '../paging.js'
import { path } from '../path.js'
import { jobStory } from '../stories/job.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'

export const jobs: Register = (program, cli) => {
  const command = program.command('jobs').description('single jobs, wherever they are')

  command
    .command('ls')
    .description('jobs, newest first')
    .addOption(new Option('--state <state>', 'in this state').choices(STATES))
    .option('--queue <queue>', 'of this queue')
    .option('--name <job>', 'of this name')
    .option('--tenant <tenant>', 'of this tenant')
    .option('--limit <count>', 'at most so many', wholeNumber(1, 100_000), 50)
    .addHelpText(
      'after',
      examples('redrive jobs ls --state retrying --queue mail', 'redrive jobs ls -o jsonl --limit 1000'),
    )
    .action(async ({ limit, ...filter }) => {
      const { client, output, host } = cli()
      const found = await gather<JobBrief>(await client(), '/jobs', filter, { limit })
      output.list(found.items, columns(host.clock.now()), 'There are no such jobs. `redrive enqueue` makes one.')
      sayMore(output, found)
    })

  command
    .command('show')
    .description('one job, with its attempts')
    .argument('<id>', 'its id', id)
    .addHelpText('after', examples('redrive jobs show 01981234-5678-7abc-8def-0123456789ab'))
    .action(async (asked: string) => {
      const { client, output, host } = cli()
      const job = await (await client()).get<Job>(path`/jobs/${asked}`)
      output.one(job, (value, style) => jobStory(value, output, host.clock.now(), style))
    })

  command
    .command('cancel')
    .description('cancel one that waits; ask one that runs to stop')
    .argument('<id>', 'its id', id)
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples(`redrive jobs cancel 01981234-5678-7abc-8def-0123456789ab --reason 'wrong file'`))
    .action(async (asked: string, body: { reason?: string }) => {
      const { client, output } = cli()
      const done = await (await client()).post<Cancelled>(path`/jobs/${asked}/cancel`, body)
      output.one(done, ({ result }) => [result === 'cancelled' ? 'cancelled' : 'asked to stop'])
    })

  command
    .command('retry')
    .description('send a dead job back to run')
    .argument('<id>', 'its id', id)
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples('redrive jobs retry 01981234-5678-7abc-8def-0123456789ab'))
    .action(async (asked: string, body: { reason?: string }) => {
      const { client, output } = cli()
      const letter = await (await client()).post<DeadLetter>(path`/jobs/${asked}/retry`, body)
      output.one(letter, ({ status }) => [status])
    })
}

const columns = (now: number): readonly Column<JobBrief>[] => [
  { title: 'ID', value: job => job.id, whole: true },
  { title: 'STATE', value: job => job.state, paint: (job, style) => (job.state === 'dead' ? style.red : undefined) },
  { title: 'QUEUE', value: job => job.queue, long: true },
  { title: 'JOB', value: job => job.name, long: true },
  { title: 'TRIES', value: job => job.attempt, right: true, spare: true },
  { title: 'AGE', value: job => ago(job.createdAt, now), right: true },
  { title: 'TENANT', value: job => job.tenant, long: true, spare: true },
]
