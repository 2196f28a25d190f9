// `redrive dlq fail` and `note`: what a person writes on a dead letter, and closing it for good.
import type { DeadLetter } from '../answers.js'
import { id, ids, wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { usageError } from '../exit.js'
import { examples } from '../help.js'
import { letterColumns } from '../letter-columns.js'
import { path } from '../path.js'

export const dlqClose: Register = (command, cli) => {
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
        if (closed.length > 0) output.list(closed, letterColumns(host.clock.now(), 'all'), '')
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
