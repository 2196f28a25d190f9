// `redrive group`: causes of failure as work items.
import { type Command, Option } from 'commander'
import { KINDS } from '../../domain/failure.js'
import { GROUP_STATUSES } from '../../domain/group.js'
import type { Group, GroupBrief } from '../answers.js'
import { wholeNumber } from '../arguments.js'
import type { Cli, Register } from '../cli.js'
import { examples } from '../help.js'
import { gather, sayMore } from '../paging.js'
import { path } from '../path.js'
import { groupStory } from '../stories/group.js'
import type { Column } from '../table.js'
import { printable } from '../text.js'
import { ago } from '../time.js'

export const group: Register = (program, cli) => {
  const command = program.command('group').description('causes of failure, as work items')

  command
    .command('ls')
    .description('causes, the one that failed last first')
    .addOption(new Option('--status <status>', 'in this status').choices(GROUP_STATUSES))
    .addOption(new Option('--kind <kind>', 'of this kind').choices(KINDS))
    .addOption(new Option('--sort <order>', 'in this order').choices(['lastSeen', 'failures']))
    .option('--service <service>', 'of this service')
    .option('--queue <queue>', 'seen in this queue')
    .option('--assignee <who>', 'that this person looks after')
    .option('--text <text>', 'with this text in the title')
    .option('--limit <count>', 'at most so many', wholeNumber(1, 10_000), 50)
    .addHelpText('after', examples('redrive group ls --status open', 'redrive group ls --sort failures --limit 5'))
    .action(async ({ limit, text: q, ...filter }) => {
      const { client, output, host } = cli()
      const found = await gather<GroupBrief>(await client(), '/groups', { ...filter, q }, { limit })
      output.list(found.items, columns(host.clock.now()), 'Nothing has failed in this way.')
      sayMore(output, found)
    })

  command
    .command('show')
    .description('one cause: what it affects, and how it looks')
    .argument('<id>', 'its id')
    .addHelpText('after', examples('redrive group show 4f1c2a'))
    .action(async (id: string) => {
      const { client, output, host } = cli()
      const found = await (await client()).get<Group>(path`/groups/${id}`)
      output.one(found, (value, style) => groupStory(value, host.clock.now(), style))
    })

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
    .addHelpText('after', examples('redrive group assign 4f1c2a ada'))
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
    .addHelpText('after', examples(`redrive group ${verb} 4f1c2a`))
    .action(async (id: string, { note: notes, reason }: { note?: string; reason?: string }) => {
      const { client, output } = cli()
      const changed = await (await client()).patch<Group>(path`/groups/${id}`, { status, notes, reason })
      output.one(changed, value => [value.status])
    })
}

const columns = (now: number): readonly Column<GroupBrief>[] => [
  { title: 'GROUP', value: row => row.id, whole: true },
  {
    title: 'STATUS',
    value: row => (row.regressed ? 'regressed' : row.status),
    paint: (row, style) => (row.regressed ? style.red : undefined),
  },
  { title: 'DEAD', value: row => `${row.dead.value}${row.dead.exact ? '' : '+'}`, right: true },
  { title: 'FAILURES', value: row => row.failures, right: true },
  { title: 'LAST', value: row => `${ago(row.lastSeen, now)} ago` },
  { title: 'KIND', value: row => row.kind, spare: true },
  { title: 'ASSIGNEE', value: row => row.assignee, long: true, spare: true },
  { title: 'CAUSE', value: row => row.title, long: true },
]
