// `redrive dlq retry`: one, several, or all that match. What matches is looked up first, counted and shown; that very set is
// sent back, and what dies meanwhile does not join it (pitfalls 7 and 21).
import type { DeadLetter } from '../answers.js'
import { ids as idsOf, wholeNumber } from '../arguments.js'
import type { Cli, Register } from '../cli.js'
import { confirm } from '../confirm.js'
import { usageError } from '../exit.js'
import { examples } from '../help.js'
import { inWords, type LetterOptions, letterOptions, letterQuery } from '../letter-filter.js'
import { path } from '../path.js'
import { openLetters, retryMany } from '../redrive-set.js'

interface Options extends LetterOptions {
  readonly all?: true
  readonly dryRun?: true
  readonly perSecond?: number
  readonly limit: number
  readonly reason?: string
}

const MOST = 100_000

export const dlqRetry: Register = (program, cli) => {
  letterOptions(program.command('retry').description('send dead letters back to run: by id, by filter, or all'))
    .argument('[ids...]', 'their ids', idsOf)
    .option('--all', 'every open one')
    .option('--limit <count>', 'at most so many, the newest', wholeNumber(1, MOST), MOST)
    .option('--per-second <count>', 'no more than so many a second', wholeNumber(1, 10_000))
    .option('--dry-run', 'only count them')
    .option('--reason <text>', 'for the audit')
    .addHelpText(
      'after',
      examples(
        'redrive dlq retry 01981234-5678-7abc-8def-0123456789ab',
        'redrive dlq retry --queue mail --kind network --since 2h',
        'redrive dlq retry --group v1:a2298d03c0126e2c --per-second 20 --yes',
        'redrive dlq retry --all --dry-run',
      ),
    )
    .action(async (ids: readonly string[] | undefined, options: Options) => {
      const desk = cli()
      const query = letterQuery(options, desk.host.clock.now())
      const [asked, filter] = [ids ?? [], inWords(query)]
      const ways = [asked.length > 0, filter !== '', options.all === true].filter(Boolean).length
      if (ways === 0) throw usageError('Say which dead letters: ids, a filter such as --queue, or --all')
      if (ways > 1) throw usageError('Ids, a filter and --all cannot go together')
      if (asked.length > 0 && options.dryRun) throw usageError('--dry-run goes with a filter or --all')
      const [first] = asked
      if (asked.length === 1 && first !== undefined) return retryOne(desk, first, options.reason)
      const set = asked.length > 0 ? asked : await openLetters(desk, query, options.limit)
      if (set.length === 0) desk.output.say(`No open dead letter matches${filter && ` (${filter})`}.`)
      const count = `${set.length.toLocaleString('en')} open dead letter${set.length === 1 ? '' : 's'}`
      if (options.dryRun) return desk.output.one({ matching: set.length }, () => [`${count} would be sent back`])
      if (asked.length === 0 && set.length > 0) {
        await confirm(desk, `${count} (${filter || 'all there are'}) will be sent back to run.`)
      }
      await retryMany(desk, set, options)
    })
}

async function retryOne({ client, output }: Cli, id: string, reason: string | undefined): Promise<void> {
  const letter = await (await client()).post<DeadLetter>(path`/dead-letter-queue/${id}/retry`, { reason })
  output.one(letter, ({ status }) => [status])
}
