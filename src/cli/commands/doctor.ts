// `redrive doctor`: what is wrong, and what to do about it. Looks at the database itself; where a running server has the
// embedded one to itself, it asks that server.
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { isRedriveError } from '../../domain/errors.js'
import type { Diagnosis } from '../../operator/doctor.js'
import type { Cli, Register } from '../cli.js'
import { CliError, EXIT } from '../exit.js'
import { examples } from '../help.js'
import { diagnosisStory } from '../stories/diagnosis.js'

const WHERE = `
Looks at the database of DATABASE_URL or PG*, or at the embedded one in REDRIVE_DATA. With --url, or where a running server has
the embedded database open, it asks the server (REDRIVE_URL, REDRIVE_TOKEN). Exit 0: all is well.`

export const doctor: Register = (program, cli) => {
  program
    .command('doctor')
    .description('look for what is wrong with database, ledger and workers, and say what to do')
    .addHelpText('after', examples('redrive doctor', 'redrive doctor -o json | jq .findings'))
    .addHelpText('after', WHERE)
    .action(async () => {
      const { output } = cli()
      const diagnosis = await diagnose(cli())
      output.one(diagnosis, diagnosisStory)
      const problems = diagnosis.findings.filter(({ status }) => status === 'problem').length
      if (!diagnosis.well) throw new CliError(`${problems} problem${problems === 1 ? '' : 's'} found`)
    })
}

async function diagnose(cli: Cli): Promise<Diagnosis> {
  const { host, options } = cli
  const overHttp = async () => (await cli.client()).get<Diagnosis>('/doctor')
  if (options.url !== undefined) return overHttp()
  const { embeddedFolder, notOpened, withLedger } = await import('../../open-ledger.js')
  const folder = embeddedFolder(host.env)
  // Looking must not make a database: where there is none yet, there may be a server elsewhere.
  if (folder !== undefined && (host.env.REDRIVE_URL || !(await exists(join(folder, 'pgdata'))))) return overHttp()
  try {
    return await withLedger(host, ledger => ledger.examine())
  } catch (error) {
    if (!isRedriveError(error, 'LEDGER_LOCKED')) return notOpened(error)
    return overHttp().catch(refusal => {
      // Whoever has it open is not served where we looked: that it is open is then what there is to say.
      if (refusal instanceof CliError && refusal.exit === EXIT.error) return notOpened(error)
      throw refusal
    })
  }
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )
