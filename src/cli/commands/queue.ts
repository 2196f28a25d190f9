// `redrive queue`: see queues, pause and resume them, remove what has ended.
import { Option } from 'commander'
import type { Cleaned, List, QueueCounts, QueueSettings } from '../answers.js'
import { lengthOfTime } from '../arguments.js'
import type { Register } from '../cli.js'
import { confirm } from '../confirm.js'
import { examples } from '../help.js'
import { path } from '../path.js'
import type { Column } from '../table.js'
import { ago, duration } from '../time.js'

interface CleanOptions {
  readonly status: string
  readonly olderThan: number
  readonly includeOpen?: true
  readonly reason?: string
}

export const queue: Register = (program, cli) => {
  const command = program.command('queue').description('queues: see, pause, resume, clean')

  command
    .command('ls')
    .description('every queue with its counts')
    .addHelpText('after', examples('redrive queue ls'))
    .action(async () => {
      const { client, output, host } = cli()
      const { items } = await (await client()).get<List<QueueCounts>>('/queues')
      output.list(items, columns(host.clock.now()), 'There are no queues yet: the first worker or job makes one.')
    })

  for (const [verb, description] of [
    ['pause', 'let running jobs finish and start none'],
    ['resume', 'start its jobs again'],
  ] as const) {
    command
      .command(verb)
      .description(description)
      .argument('<queue>', 'its name')
      .option('--reason <text>', 'for the audit')
      .addHelpText('after', examples(`redrive queue ${verb} mail --reason 'the mail server is being moved'`))
      .action(async (name: string, body: { reason?: string }) => {
        const { client, output } = cli()
        const settings = await (await client()).post<QueueSettings>(path`/queues/${name}/${verb}`, body)
        output.one(settings, ({ paused }) => [paused ? 'paused' : 'running'])
      })
  }

  command
    .command('clean')
    .description('remove jobs that have ended; open dead letters only if that is said')
    .argument('<queue>', 'its name')
    .addOption(
      new Option('--status <status>', 'which').choices(['completed', 'cancelled', 'dead']).makeOptionMandatory(),
    )
    .requiredOption('--older-than <time>', 'that ended longer ago than this: 0, 12h, 30d', lengthOfTime)
    .option('--include-open', 'dead letters that nobody has resolved as well')
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples('redrive queue clean mail --status completed --older-than 7d'))
    .action(async (name: string, { status, olderThan, includeOpen, reason }: CleanOptions) => {
      const desk = cli()
      const which = `${status} jobs of queue ${name} that ended more than ${duration(olderThan)} ago`
      await confirm(desk, `All ${which}${includeOpen ? ', open dead letters too,' : ''} will be removed for good.`)
      const body = { status, grace: olderThan, includeOpen, reason }
      const cleaned = await (await desk.client()).post<Cleaned>(path`/queues/${name}/clean`, body)
      desk.output.one(cleaned, ({ removed }) => [`${removed.toLocaleString('en')} removed`])
    })
}

const columns = (now: number): readonly Column<QueueCounts>[] => [
  { title: 'QUEUE', value: row => row.queue, long: true },
  { title: 'WAITING', value: row => row.waiting, right: true },
  { title: 'ACTIVE', value: row => row.active, right: true },
  { title: 'RETRYING', value: row => row.retrying, right: true },
  { title: 'SCHEDULED', value: row => row.scheduled, right: true, spare: true },
  { title: 'HELD', value: row => row.held, right: true, spare: true },
  { title: 'DEAD', value: row => row.dead, right: true, paint: (row, style) => (row.dead > 0 ? style.red : undefined) },
  {
    title: 'OLDEST',
    value: row => (row.oldestWaitingAt === null ? undefined : ago(row.oldestWaitingAt, now)),
    right: true,
  },
  { title: '', value: row => (row.paused ? 'paused' : ''), paint: (_, style) => style.yellow },
]
