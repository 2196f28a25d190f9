// `redrive recover`: one recovery run now.
import type { RecoveryRun } from '../answers.js'
import type { Register } from '../cli.js'
import { CliError, EXIT } from '../exit.js'
import { examples } from '../help.js'
import { duration } from '../time.js'

export const recover: Register = (program, cli) => {
  program
    .command('recover')
    .description('one recovery run now: rescue, release what is due, bury the exhausted, clean')
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples('redrive recover', 'redrive recover -o json | jq .rescued'))
    .action(async (body: { reason?: string }) => {
      const { client, output } = cli()
      const run = await (await client()).post<RecoveryRun>('/trigger-recovery', body)
      if (run.status === 'running') output.say('A recovery run is under way already:')
      output.one(run, value => [told(value)])
      if (run.status === 'failed')
        throw new CliError(`The run failed: ${run.error ?? 'it did not say why'}`, { exit: EXIT.error })
    })
}

function told({ status, durationMs, rescued, promoted, buried, triaged, cleaned, expired }: RecoveryRun): string {
  const counts = { rescued, released: promoted, buried, triaged, cleaned, expired }
  const did = Object.entries(counts).flatMap(([name, count]) => (count > 0 ? [`${count} ${name}`] : []))
  const took = durationMs === undefined ? '' : ` in ${duration(durationMs)}`
  return `${status}${took}: ${did.length === 0 ? 'there was nothing to do' : did.join(', ')}`
}
