// Which dead letters: the options that `dlq ls` and `dlq retry` share, and what they mean to the API.
import { type Command, Option } from 'commander'
import { KINDS } from '../domain/failure.js'
import { timeOrAgo } from './arguments.js'
import type { Query } from './client.js'

export interface LetterOptions {
  readonly queue?: string
  readonly name?: string
  readonly kind?: string
  readonly service?: string
  readonly group?: string
  readonly assignedTo?: string
  readonly since?: (now: number) => string
  readonly until?: (now: number) => string
  readonly text?: string
}

export const letterOptions = (command: Command): Command =>
  command
    .option('--queue <queue>', 'of this queue')
    .option('--name <job>', 'of jobs of this name')
    .addOption(new Option('--kind <kind>', 'that failed in this way').choices(KINDS))
    .option('--service <service>', 'that called this service')
    .option('--group <id>', 'of this group')
    .option('--assigned-to <who>', 'that this person looks after')
    .option('--since <time>', 'that died since then: a time, or 30m, 2h, 7d ago', timeOrAgo)
    .option('--until <time>', 'that died before then', timeOrAgo)
    .option('--text <text>', 'with this text in message or job name')

export function letterQuery(options: LetterOptions, now: number): Query {
  const { queue, name, kind, service, group, assignedTo, since, until, text: q } = options
  return { queue, name, kind, service, group, assignedTo, since: since?.(now), until: until?.(now), q }
}

/** `queue mail, kind transient`; '' where nothing is asked for. */
export const inWords = (query: Query): string =>
  Object.entries(query)
    .flatMap(([name, value]) => (value === undefined ? [] : [`${name === 'q' ? 'text' : name} ${value}`]))
    .join(', ')
