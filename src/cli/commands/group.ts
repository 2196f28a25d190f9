// `redrive group`: causes of failure as work items. What is done about them is in group-change.ts.
import { Option } from 'commander'
import { KINDS } from '../../domain/failure.js'
import { GROUP_STATUSES } from '../../domain/group.js'
import type { Group, GroupBrief } from '../answers.js'
import { wholeNumber } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { gather, sayMore } from '../paging.js'
import { path } from '../path.js'
import { groupStory } from '../stories/group.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'
import { groupChange } from './group-change.js'

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
    .addHelpText('after', examples('redrive group show v1:a2298d03c0126e2c'))
    .action(async (id: string) => {
      const { client, output, host } = cli()
      const found = await (await client()).get<Group>(path`/groups/${id}`)
      output.one(found, (value, style) => groupStory(value, host.clock.now(), style))
    })

  groupChange(command, cli)
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
