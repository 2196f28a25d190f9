// `npm run providers [-- --demo] [modules…]`: the provider worker until Ctrl-C. The first signal lets running operations finish,
// the second ends it at once.
import { parseArgs } from 'node:util'
import { runDemo } from './demo/run-demo.js'
import { openLog } from './log.js'
import { openStation, type Station } from './station.js'

const USAGE = `usage: npm run providers -- [--demo] [--port N] [--host ADDRESS] [provider modules…]

A provider module exports by default a function (registry, { log }) that registers its providers.
Settings: apps/providers/README.md`

const EXIT = { ok: 0, error: 1, usage: 2, interrupted: 130 } as const
/** npm and a closing terminal repeat a signal: what comes right after the first is not a second wish. */
const SAME_SIGNAL_MS = 250
const DEMO_RECOVERY_SECONDS = '10'

process.exitCode = await main(process.argv.slice(2))

async function main(args: readonly string[]): Promise<number> {
  const asked = parse(args)
  if (asked instanceof Error) {
    process.stderr.write(`providers: ${asked.message}\n${USAGE}\n`)
    return EXIT.usage
  }
  if (asked.help) {
    process.stdout.write(`${USAGE}\n`)
    return EXIT.ok
  }
  const stop = stopSignal()
  try {
    await run(asked, stop)
    return EXIT.ok
  } catch (error) {
    const { message, code } = error as { message?: string; code?: string }
    process.stderr.write(`providers: ${message || String(error)}${code ? ` [${code}]` : ''}\n`)
    return EXIT.error
  }
}

interface Asked {
  readonly demo: boolean
  readonly help: boolean
  readonly host: string | undefined
  readonly port: number | undefined
  readonly modules: readonly string[]
}

function parse(args: readonly string[]): Asked | Error {
  try {
    const { values, positionals: modules } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        demo: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
        host: { type: 'string' },
        port: { type: 'string' },
      },
    })
    const host = values.host ?? (process.env.HOST || undefined)
    return { demo: values.demo, help: values.help, host, port: portOf(values.port ?? process.env.PORT), modules }
  } catch (error) {
    return error as Error
  }
}

function portOf(text: string | undefined): number | undefined {
  if (!text) return undefined
  const port = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN
  if (port <= 65_535) return port
  throw new Error(`The port is ${JSON.stringify(text.slice(0, 100))}; it must be a number from 0 to 65535`)
}

async function run({ demo, host, port, modules }: Asked, stop: AbortSignal): Promise<void> {
  // What was discarded or has started is worth a line: more than the library says by itself.
  const env = {
    LOG_LEVEL: 'info',
    ...(demo && { RECOVERY_INTERVAL_SECONDS: DEMO_RECOVERY_SECONDS }),
    ...process.env,
  }
  const log = openLog(env.LOG_LEVEL)
  const station = await openStation({
    env,
    log,
    modules,
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
  })
  let endDemo: (() => void) | undefined
  try {
    if (demo) endDemo = await runDemo(station.app, station.redrive, log)
    process.stdout.write(greeting(station))
    await aborted(stop)
  } finally {
    endDemo?.()
    await station.close()
  }
}

function greeting({ url, token, app }: Station): string {
  const { rabbitmq } = app.settings
  const secret = token ?? '<your token>'
  const ask = `curl -H 'authorization: Bearer ${secret}'`
  return [
    `Provider worker at ${url}; jobs are carried by ${rabbitmq ? `RabbitMQ, dead letters shown in ${rabbitmq.mirror}` : 'the ledger'}`,
    ...(token === undefined ? [] : ['A token was made; it is shown this once:', `  ${token}`]),
    'Try:',
    `  ${ask} ${url}/queue-stats`,
    `  ${ask} '${url}/api/queue-admin/dead-letter-queue?queue=provider.jobs'`,
    `  ${ask} -X POST ${url}/api/queue-admin/dead-letter-queue/<id>/retry`,
    `  ${ask} ${url}/metrics`,
    '',
  ].join('\n')
}

function stopSignal(): AbortSignal {
  const stop = new AbortController()
  let askedAt = 0
  process.on('SIGINT', () => {
    if (stop.signal.aborted && performance.now() - askedAt > SAME_SIGNAL_MS) process.exit(EXIT.interrupted)
    askedAt = performance.now()
    stop.abort()
  })
  process.on('SIGTERM', () => stop.abort())
  return stop.signal
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
