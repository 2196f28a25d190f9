// `redrive service`: what jobs call, and its breakers.
import type { List, Service } from '../answers.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { path } from '../path.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'

export const service: Register = (program, cli) => {
  const command = program.command('service').description('what jobs call: breakers, isolate, release')

  command
    .command('ls')
    .description('every service with its breaker')
    .addHelpText('after', examples('redrive service ls'))
    .action(async () => {
      const { client, output, host } = cli()
      const { items } = await (await client()).get<List<Service>>('/services')
      output.list(items, columns(host.clock.now()), 'No job has named a service yet: defineJob({ service }) does.')
    })

  for (const [verb, description] of [
    ['isolate', 'hold its jobs until it is released; running ones finish'],
    ['release', 'let its jobs run again, slowly at first'],
  ] as const) {
    command
      .command(verb)
      .description(description)
      .argument('<service>', 'its name')
      .option('--reason <text>', 'for the audit')
      .addHelpText('after', examples(`redrive service ${verb} bank --reason 'maintenance until 6:00'`))
      .action(async (name: string, body: { reason?: string }) => {
        const { client, output } = cli()
        const changed = await (await client()).post<Service>(path`/services/${name}/${verb}`, body)
        output.one(changed, ({ state }) => [state])
      })
  }
}

const columns = (now: number): readonly Column<Service>[] => [
  { title: 'SERVICE', value: row => row.service, long: true },
  {
    title: 'BREAKER',
    value: row => row.state,
    paint: (row, style) => (row.state === 'closed' ? style.green : style.red),
  },
  { title: 'SINCE', value: row => (row.since === null ? undefined : `${ago(row.since, now)} ago`) },
  { title: 'SUCCEEDED', value: row => row.counts.succeeded, right: true },
  { title: 'FAILED', value: row => row.counts.failed, right: true },
  { title: 'RETRIES', value: row => row.counts.retries, right: true, spare: true },
  { title: 'REASON', value: row => row.reason, long: true },
]
