// `redrive dlq`: dead letters. Looking at them is here; what is done about them is in dlq-retry.ts and dlq-close.ts.
import { Option } from 'commander'
import { RECOVERY_STATUSES } from '../../domain/lifecycle.js'
import type { DeadLetterBrief, DeadLetterWithAttempts } from '../answers.js'
import { id, wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { letterColumns } from '../letter-columns.js'
import { type LetterOptions, letterOptions, letterQuery } from '../letter-filter.js'
import { gather, sayMore } from '../paging.js'
import { path } from '../path.js'
import { deadLetterStory } from '../stories/dead-letter.js'
import { dlqClose } from './dlq-close.js'
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
      output.list(found.items, letterColumns(now, status), empty)
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
  dlqClose(command, cli)
}
