// `redrive token`: who may ask over HTTP. The first one is made on the database itself.
import { InvalidArgumentError } from 'commander'
import { isScope, SCOPES, type Scope } from '../../domain/scope.js'
import type { Token } from '../answers.js'
import type { Register } from '../cli.js'
import { confirm } from '../confirm.js'
import { examples } from '../help.js'
import type { Column } from '../table.js'
import { ago } from '../time.js'
import { atTokenDesk } from '../token-desk.js'

const WHERE = `
With a token (REDRIVE_TOKEN, --token-file) these go through the API and need the scope admin. Without one they go to the
database itself (DATABASE_URL, PG*, or the embedded one in REDRIVE_DATA): that is how the first token is made.`

export const token: Register = (program, cli) => {
  const command = program.command('token').description('who may ask over HTTP').addHelpText('after', WHERE)

  command
    .command('create')
    .description('make a token; its secret is shown this once')
    .argument('<name>', 'whose it is: in the audit of every change')
    .requiredOption('--scope <scopes>', `what it may: ${SCOPES.join(', ')}; several with commas`, scopes)
    .option('--reason <text>', 'for the audit')
    .addHelpText(
      'after',
      examples('redrive token create ada --scope operate,payload', 'redrive token create ci --scope read > token.txt'),
    )
    .action(async (name: string, { scope, reason }: { scope: readonly Scope[]; reason?: string }) => {
      const { output } = cli()
      const made = await atTokenDesk(cli(), desk => desk.create(name, scope, reason))
      output.one(made, ({ secret }) => [secret])
      output.say(`Token ${made.name} may ${made.scopes.join(', ')}. Keep it now: it is not shown again.`)
    })

  command
    .command('ls')
    .description('tokens that were made, without their secrets')
    .addHelpText('after', examples('redrive token ls'))
    .action(async () => {
      const { output, host } = cli()
      const all = await atTokenDesk(cli(), desk => desk.list())
      output.list(all, columns(host.clock.now()), 'No token was made yet: redrive token create <name> --scope admin')
    })

  command
    .command('revoke')
    .description('it opens nothing from now on')
    .argument('<name>', 'its name')
    .option('--reason <text>', 'for the audit')
    .addHelpText('after', examples('redrive token revoke ci'))
    .action(async (name: string, { reason }: { reason?: string }) => {
      const { output } = cli()
      await confirm(cli(), `Token ${name} will be revoked.`)
      const revoked = await atTokenDesk(cli(), desk => desk.revoke(name, reason))
      output.one(revoked, () => ['revoked'])
    })
}

function scopes(text: string): Scope[] {
  const given = text.split(/[,+]/).map(scope => scope.trim())
  const known = given.filter(isScope)
  if (known.length !== given.length) throw new InvalidArgumentError(`It must be one or more of ${SCOPES.join(', ')}.`)
  return [...new Set(known)]
}

const columns = (now: number): readonly Column<Token>[] => [
  { title: 'TOKEN', value: row => row.name },
  { title: 'MAY', value: row => row.scopes.join(', ') },
  { title: 'MADE', value: row => `${ago(row.createdAt, now)} ago` },
  { title: 'BY', value: row => row.createdBy, long: true },
]
