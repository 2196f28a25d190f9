// A set of dead letters, found once and then sent back: with progress, and with what could not be.
import type { DeadLetterBrief } from './answers.js'
import type { Cli } from './cli.js'
import type { Query } from './client.js'
import { CliError, EXIT, interrupted } from './exit.js'
import { gather } from './paging.js'
import { progress } from './progress.js'
import { type Redriven, redriveInBatches } from './redrive-batches.js'

/** The ids of those that match and are open, the oldest death first, as they are to run. */
export async function openLetters({ client, host, output }: Cli, filter: Query, limit: number): Promise<string[]> {
  const shown = progress(host, 'looking for dead letters:')
  try {
    const onPage = (count: number) => shown.at(count)
    const query = { ...filter, status: 'pending' }
    const found = await gather<DeadLetterBrief>(await client(), '/dead-letter-queue', query, { limit, onPage })
    const { items, more } = found
    if (more) output.say(`There are more than ${limit.toLocaleString('en')}; these are the newest.`)
    return items.map(({ id }) => id).reverse()
  } finally {
    shown.end()
  }
}

/** However it ends, it says how far it came. */
export async function retryMany(
  { client, host, output }: Cli,
  ids: readonly string[],
  { reason, perSecond }: { readonly reason?: string; readonly perSecond?: number },
): Promise<void> {
  const shown = progress(host, 'sent back:', ids.length)
  const { clock } = host
  const signal = host.interrupt()
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
