// `redrive explain`: where a job is and why, in words.
import { printable } from '../../domain/printable.js'
import type { Explanation } from '../answers.js'
import { id } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { path } from '../path.js'

export const explain: Register = (program, cli) => {
  program
    .command('explain')
    .description('where a job is and why, what comes next and when')
    .argument('<id>', 'its id', id)
    .addHelpText('after', examples('redrive explain 01981234-5678-7abc-8def-0123456789ab'))
    .action(async (asked: string) => {
      const { client, output } = cli()
      const told = await (await client()).get<Explanation>(path`/jobs/${asked}/explain`)
      output.one(told, ({ sentences }) => sentences.map(printable))
    })
}
