// `redrive enqueue`: puts one job in line, by its name.
import { text as readAll } from 'node:stream/consumers'
import type { Enqueued } from '../answers.js'
import { jsonText, lengthOfTime, time, wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { usageError } from '../exit.js'
import { examples } from '../help.js'

interface Options {
  readonly queue?: string
  readonly delay?: number
  readonly at?: string
  readonly priority?: number
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly unique?: string
}

export const enqueue: Register = (program, cli) => {
  program
    .command('enqueue')
    .description('put one job in line')
    .argument('<name>', 'name of the job')
    .argument('<json>', 'its payload; - reads it from stdin')
    .option('--queue <queue>', 'its queue (what its workers last announced)')
    .option('--delay <time>', 'not before so long: 30s, 5m, 2h', lengthOfTime)
    .option('--at <time>', 'not before this time: 2026-01-31T12:00:00Z', time)
    .option('--priority <number>', '0 to 10, higher first', wholeNumber(0, 10))
    .option('--tenant <tenant>', 'whose job it is')
    .option('--user <user>', 'whose job it is')
    .option('--project <project>', 'whose job it is')
    .option('--unique <key>', 'only if no live job of the queue has this key')
    .addHelpText(
      'after',
      examples(
        `redrive enqueue welcome '{"to":"ada@example.org"}'`,
        `redrive enqueue report '{"month":"2026-10"}' --delay 5m --unique report-2026-10`,
        'jq -n {rows:3} | redrive enqueue import - --queue imports',
      ),
    )
    .action(async (name: string, json: string, options: Options) => {
      const { client, output, host } = cli()
      if (options.delay !== undefined && options.at !== undefined)
        throw usageError('--delay and --at cannot go together')
      const payload = parse(json === '-' ? await readAll(host.stdin) : json)
      const { delay: delayMs, at: runAt, unique: uniqueKey, ...rest } = options
      const body = { name, payload, ...rest, delayMs, runAt, uniqueKey }
      const enqueued = await (await client()).post<Enqueued>('/jobs', body)
      if (enqueued.deduplicated) output.say('A live job has this unique key already; this is its id:')
      output.one(enqueued, ({ id }) => [id])
    })
}

function parse(text: string): unknown {
  try {
    return jsonText(text)
  } catch (error) {
    throw usageError(`The payload is not right. ${(error as Error).message}`)
  }
}
