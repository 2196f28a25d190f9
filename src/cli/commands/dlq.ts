// `redrive dlq`: dead letters. Looking, closing and annotating are here; sending back is in dlq-retry.ts.
import { Option } from 'commander'
import { RECOVERY_STATUSES } from '../../domain/lifecycle.js'
import type { DeadLetter, DeadLetterBrief, DeadLetterWithAttempts } from '../answers.js'
import { id, ids, wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { usageError } from '../exit.js'
import { examples } from '../help.js'
import { type LetterOptions, letterOptions, letterQuery } from '../letter-filter.js'
import { gather, sayMore } from '../paging.js'
import { path } from '../path.js'
import { deadLetterStory } from '../stories/dead-letter.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'
import { dlqRetry } from './dlq-retry.js'

export const dlq: Register = (program, cli) => {
  const command = program.command('dlq').description('dead letters: jobs that will not run again by themselves')

  letterOptions(command.command('ls').description('dead letters, newest death first'))
    .addOption(
      new Option('--status <status>', 'what became of them').choices([...RECOVERY_STATUSES, 'all']).default('pending'),
    )
    .option('--limit <count>', 'at most so many', wholeNumber(1, 100_000), 50)
    .addHelpText(
      'after',
      examples(
        'redrive dlq ls',
        'redrive dlq ls --queue mail --kind network --since 2h',
        'redrive dlq ls --status all -o jsonl',
      ),
    )
    .action(async ({ status, limit, ...filter }: LetterOptions & { status: string; limit: number }) => {
      const { client, output, host } = cli()
      const now = host.clock.now()
      const query = { ...letterQuery(filter, now), status: status === 'all' ? undefined : status }
      const found = await gather<DeadLetterBrief>(await client(), '/dead-letter-queue', query, { limit })
      const empty =
        status === 'pending' ? 'No dead letter is open here. --status all shows the others.' : 'There are none here.'
      output.list(found.items, columns(now, status), empty)
      sayMore(output, found)
    })

  command
    .command('show')
    .description('one dead letter, with every attempt, its payload and its stack')
    .argument('<id>', 'its id', id)
    .addHelpText('after', examples('redrive dlq show 01981234-5678-7abc-8def-0123456789ab'))
    .action(async (asked: string) => {
      const { client, output, host } = cli()
      const letter = await (await client()).get<DeadLetterWithAttempts>(path`/dead-letter-queue/${asked}`)
      output.one(letter, (value, style) => deadLetterStory(value, output, host.clock.now(), style))
    })

  dlqRetry(command, cli)

  command
    .command('fail')
    .description('close dead letters for good')
    .argument('<ids...>', 'their ids', ids)
    .requiredOption('--reason <text>', 'why, for the audit and whoever looks later')
    .addHelpText('after', examples(`redrive dlq fail 01981234-5678-7abc-8def-0123456789ab --reason 'customer is gone'`))
    .action(async (asked: readonly string[], { reason }: { reason: string }) => {
      const { client, output, host } = cli()
      const closed: DeadLetter[] = []
      try {
        for (const one of asked) {
          closed.push(await (await client()).post<DeadLetter>(path`/dead-letter-queue/${one}/mark-failed`, { reason }))
        }
      } finally {
        // Where one could not be, those before it are closed all the same.
        if (closed.length > 0) output.list(closed, columns(host.clock.now(), 'all'), '')
      }
    })

  command
    .command('note')
    .description('note something, say who looks after it, how urgent it is')
    .argument('<id>', 'its id', id)
    .argument('[text]', 'the notes, instead of those there are; an empty text takes them away')
    .option('--assign <who>', 'who looks after it; an empty text: nobody')
    .option('--priority <number>', '0 to 10', wholeNumber(0, 10))
    .addHelpText(
      'after',
      examples(`redrive dlq note 01981234-5678-7abc-8def-0123456789ab 'waits for the bank' --assign ada`),
    )
    .action(async (asked: string, text: string | undefined, options: { assign?: string; priority?: number }) => {
      const { client, output } = cli()
      const { assign, priority } = options
      const change = {
        ...(text !== undefined && { notes: text || null }),
        ...(assign !== undefined && { assignedTo: assign || null }),
        ...(priority !== undefined && { priority }),
      }
      if (Object.keys(change).length === 0) throw usageError('Give a text, --assign or --priority')
      const letter = await (await client()).put<DeadLetter>(path`/dead-letter-queue/${asked}/notes`, change)
      output.one(letter, () => ['noted'])
    })
}

const columns = (now: number, status: string): readonly Column<DeadLetterBrief>[] => [
  { title: 'ID', value: letter => letter.id, whole: true },
  ...(status === 'all' ? [{ title: 'STATUS', value: (letter: DeadLetterBrief) => letter.status }] : []),
  { title: 'DIED', value: letter => `${ago(letter.diedAt, now)} ago` },
  { title: 'QUEUE', value: letter => letter.queue, long: true },
  { title: 'KIND', value: letter => letter.kind, spare: true },
  { title: 'JOB', value: letter => letter.name, long: true, spare: true },
  { title: 'TRIES', value: letter => letter.totalAttempts, right: true, spare: true },
  { title: 'ERROR', value: letter => letter.message, long: true, paint: (_, style) => style.red },
]
