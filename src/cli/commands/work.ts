// `redrive work`: runs the jobs of the user's own modules until it is told to stop.

import { port } from '../arguments.js'
import type { Register } from '../cli.js'
import { examples } from '../help.js'
import { aborted, stopSignal } from '../stop-signal.js'
import { addWorkOptions, type WorkOptions } from '../work-options.js'

const ABOUT = `
A module is a file of yours, in JavaScript or TypeScript. Every job with a handler that it exports is worked: by a name, as the
default, or in a list. If it exports \`setup\`, that is called with { redrive, env, log } before the work begins, and what it
returns when the work has ended.

SIGTERM and Ctrl-C let running jobs finish within --grace; the rest go back without spending an attempt. A second Ctrl-C stops
at once. Files that change are not loaded again.`

interface Options extends WorkOptions {
  readonly metricsPort?: number
  readonly metricsHost: string
}

export const work: Register = (program, cli) => {
  const command = program
    .command('work')
    .description('work on the jobs of your modules (DATABASE_URL, PG*, or REDRIVE_DATA)')
    .argument('<modules...>', 'files that export jobs')
  addWorkOptions(command)
    .option('--metrics-port <port>', 'serve /metrics and /healthz there', port)
    .option('--metrics-host <host>', 'on this address', '127.0.0.1')
    .addHelpText('after', ABOUT)
    .addHelpText(
      'after',
      examples('redrive work ./jobs.ts', 'redrive work dist/mail.js dist/billing.js --queues mail --concurrency 50'),
    )
    .action(async (paths: string[], options: Options) => {
      const { host, output } = cli()
      const { env, clock } = host
      // Loaded only here: it brings the whole library along.
      const [{ jobModules }, { openStation }, { loggerFor }, { serveMetrics }] = await Promise.all([
        import('../modules.js'),
        import('../station.js'),
        import('../process-logger.js'),
        import('../metrics-server.js'),
      ])
      const stop = stopSignal(host)
      const modules = await jobModules(paths, process.cwd())
      const station = await openStation({ ...options, env, clock, modules, logger: loggerFor(host) })
      let metrics: Awaited<ReturnType<typeof serveMetrics>> | undefined
      try {
        await station.start()
        if (options.metricsPort !== undefined) {
          metrics = await serveMetrics(station.redrive, env, { port: options.metricsPort, host: options.metricsHost })
          output.say(`metrics at ${metrics.url}/metrics`)
        }
        output.say(`working on ${told(station.jobs)}; Ctrl-C stops`)
        await aborted(stop)
        const running = station.active()
        output.say(
          `stopping: letting ${running} running ${running === 1 ? 'job' : 'jobs'} finish (Ctrl-C again to stop now)`,
        )
      } finally {
        await station.close(options.grace, async () => metrics?.close())
      }
    })
}

function told(jobs: readonly { name: string; queue: string }[]): string {
  const queues = [...new Set(jobs.map(({ queue }) => queue))].sort()
  const names = jobs.map(({ name }) => name).sort()
  return `${names.join(', ')} of ${queues.length === 1 ? 'queue' : 'queues'} ${queues.join(', ')}`
}
