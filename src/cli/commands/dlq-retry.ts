// `redrive dlq retry`: one, several, or all that match. What matches is looked up first, counted and shown; that very set is
// sent back, and what dies meanwhile does not join it (pitfalls 7 and 21).
import type { DeadLetter, DeadLetterBrief } from '../answers.js'
import { ids as idsOf, wholeNumber } from '../arguments.js'
import type { Cli, Register } from '../cli.js'
import { confirm } from '../confirm.js'
import { CliError, EXIT, interrupted, usageError } from '../exit.js'
import { examples } from '../help.js'
import { inWords, type LetterOptions, letterOptions, letterQuery } from '../letter-filter.js'
import { gather } from '../paging.js'
import { path } from '../path.js'
import { progress } from '../progress.js'
import { type Redriven, redriveInBatches } from '../redrive-batches.js'

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
        'redrive dlq retry --group 4f1c2a --per-second 20 --yes',
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
      const set = asked.length > 0 ? asked : await matching(desk, { ...query, status: 'pending' }, options.limit)
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

/** The oldest death first, as they are to run. */
async function matching(
  { client, host, output }: Cli,
  query: Parameters<typeof gather>[2],
  limit: number,
): Promise<string[]> {
  const shown = progress(host, 'looking for dead letters:')
  try {
    const onPage = (count: number) => shown.at(count)
    const found = await gather<DeadLetterBrief>(await client(), '/dead-letter-queue', query, { limit, onPage })
    const { items, more } = found
    if (more) output.say(`There are more than ${limit.toLocaleString('en')}; these are the newest.`)
    return items.map(({ id }) => id).reverse()
  } finally {
    shown.end()
  }
}

async function retryMany({ client, host, output }: Cli, ids: readonly string[], options: Options): Promise<void> {
  const shown = progress(host, 'sent back:', ids.length)
  const { clock } = host
  const signal = host.interrupt()
  const { reason, perSecond } = options
  let sofar = 0
  const onBatch = (count: number) => {
    sofar = count
    shown.at(count)
  }
  const { done, ...result } = await redriveInBatches(await client(), ids, { clock, signal, reason, perSecond, onBatch })
    .catch(error => {
      if (!(error instanceof CliError)) throw error
      const { message, exit, code, next } = error
      const before = `${sofar} of ${ids.length} had been dealt with`
      throw new CliError(`${message} (${before})`, { exit, ...(code && { code }), ...(next && { next }) })
    })
    .finally(() => shown.end())
  output.one(result, told)
  if (done < ids.length) {
    const left = ids.length - done
    throw interrupted(`interrupted: ${done} of ${ids.length} were dealt with, ${left} are as they were`)
  }
  const not = result.conflicts.length + result.notOpen.length
  if (not > 0) throw new CliError(`${not} of ${ids.length} could not be sent back`, { exit: EXIT.conflict })
}

const told = ({ redriven, conflicts, notOpen }: Redriven): string[] => [
  `${redriven.length.toLocaleString('en')} sent back`,
  ...conflicts.map(id => `${id} was left: a live job holds its unique key`),
  ...notOpen.map(id => `${id} was left: it is not open, or not there`),
]
