// `redrive serve`: the API, recovery and the jobs of the given modules, in one process.
import { port } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { addWorkOptions, type ServerOptions } from '../work-options.js'

const ABOUT = `
Runs on the database of DATABASE_URL or PG*, or on one of its own in REDRIVE_DATA (.redrive). With no token configured
(REDRIVE_TOKENS) or made (redrive token create), it makes one at its first start and shows it once.

Modules are as for \`redrive work\`. --demo adds jobs of which some fail, so that there is something to see.`

export const serve: Register = (program, cli) => {
  const command = program
    .command('serve')
    .description('serve the API, and work on the jobs of your modules')
    .argument('[modules...]', 'files that export jobs')
    .option('--demo', 'produce jobs of which some fail')
    .option('--port <port>', 'listen there (PORT, 3000)', port)
    .option('--host <host>', 'on this address (HOST, 127.0.0.1)')
  addWorkOptions(command)
    .addHelpText('after', ABOUT)
    .addHelpText('after', examples('redrive serve --demo', 'redrive serve ./jobs.ts --port 8080'))
    .action(async (paths: string[], options: ServerOptions) => {
      // Loaded only here: it brings the whole library along.
      const { runServer } = await import('../run-server.js')
      await runServer(cli().host, paths, options)
    })
}
