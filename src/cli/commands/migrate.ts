// `redrive migrate`: brings the ledger's schema up to date. Talks to the database itself: there may be no server yet.
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Register } from '../cli.js'
import { CliError } from '../exit.js'
import { examples } from '../help.js'
import type { Column } from '../table.js'

const COLUMNS: readonly Column<string>[] = [{ title: 'MIGRATION', value: name => name }]

export const migrate: Register = (program, cli) => {
  program
    .command('migrate')
    .description("bring the ledger's schema up to date (DATABASE_URL, PG*, or REDRIVE_DATA)")
    .option('--check', 'change nothing; exit 1 if something is pending')
    .addHelpText('after', examples('DATABASE_URL=postgres://deploy@db/app redrive migrate', 'redrive migrate --check'))
    .action(async ({ check }: { check?: true }) => {
      const { host, output } = cli()
      // Loaded only here: it brings the drivers of the databases along.
      const { embeddedFolder, withLedger } = await import('../../open-ledger.js')
      const folder = embeddedFolder(host.env)
      // Looking must not make a database.
      if (check && folder !== undefined && !existsSync(join(folder, 'pgdata'))) {
        throw new CliError(`There is no embedded database in ${folder} yet`, { next: 'run `redrive migrate`' })
      }
      await withLedger(host, async ledger => {
        const names = check ? await ledger.pending() : await ledger.migrate()
        output.list(names, COLUMNS, `Schema ${ledger.schema} of ${ledger.place} is up to date.`)
        if (check && names.length > 0) {
          throw new CliError(`${names.length} to apply to schema ${ledger.schema}`, { next: 'run `redrive migrate`' })
        }
        if (names.length > 0) output.say(`${names.length} applied to schema ${ledger.schema} of ${ledger.place}.`)
      })
    })
}
