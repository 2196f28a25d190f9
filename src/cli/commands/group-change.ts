// `redrive group ack|resolve|mute|reopen|assign`: whose work a cause is, and where it stands.
import type { Command } from 'commander'
import { printable } from '../../domain/printable.js'
import type { Group } from '../answers.js'
import type { Cli, Register } from '../cli.js'
import { examples } from '../help.js'
import { path } from '../path.js'

export const groupChange: Register = (command, cli) => {
  change(command, cli, { verb: 'ack', status: 'acknowledged', description: 'say that somebody is on it' })
  change(command, cli, {
    verb: 'resolve',
    status: 'resolved',
    description: 'say that it is fixed; if it fails again it is regressed',
  })
  change(command, cli, { verb: 'mute', status: 'muted', description: 'say that nobody needs to hear of it' })
  change(command, cli, { verb: 'reopen', status: 'open', description: 'open it again' })

  command
    .command('assign')
    .description('say who looks after it')
    .argument('<id>', 'its id')
    .argument('<who>', "a name; '' for nobody")
    .addHelpText('after', examples('redrive group assign v1:a2298d03c0126e2c ada'))
    .action(async (id: string, who: string) => {
      const { client, output } = cli()
      const changed = await (await client()).patch<Group>(path`/groups/${id}`, { assignee: who || null })
      output.one(changed, ({ assignee }) => [
        assignee === undefined ? 'assigned to nobody' : `assigned to ${printable(assignee)}`,
      ])
    })
}

interface Change {
  readonly verb: string
  readonly status: string
  readonly description: string
}

function change(command: Command, cli: () => Cli, { verb, status, description }: Change): void {
  command
    .command(verb)
    .description(description)
    .argument('<id>', 'its id')
    .option('--note <text>', 'notes, instead of those there are')
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples(`redrive group ${verb} v1:a2298d03c0126e2c`))
    .action(async (id: string, { note: notes, reason }: { note?: string; reason?: string }) => {
      const { client, output } = cli()
      const changed = await (await client()).patch<Group>(path`/groups/${id}`, { status, notes, reason })
      output.one(changed, value => [value.status])
    })
}
