// What `npm start` runs: a worker on the ledger with a small demo job set, and a live summary, until there is an HTTP
// API to run instead. Ctrl-C lets running jobs finish; whatever is left is found by the next start.
import { collectNews } from './demo/news.js'
import { runDemo } from './demo/run.js'
import { openScreen, type Screen } from './demo/screen.js'
import { printable } from './demo/summary.js'
import { systemClock } from './domain/clock.js'
import { openRedrive } from './index.js'
import { databaseOf, readSettings } from './settings.js'

const USAGE = 'usage: npm start [-- --demo]'
const HELP = `${USAGE}

Runs a worker with a small set of demo jobs and prints a live summary. Until the HTTP API exists, --demo changes nothing.
  Database   DATABASE_URL, or PGHOST and the other PG* variables; without them an embedded one in REDRIVE_DATA (.redrive)
  Settings   docs/operations/settings.md`

const EXIT = { ok: 0, error: 1, usage: 2, interrupted: 130 } as const

/** npm and a closing terminal repeat a signal: what comes right after the first is not a second wish. */
const SAME_SIGNAL_MS = 250

process.exitCode = await main(process.argv.slice(2), process.env)

async function main(args: readonly string[], env: NodeJS.ProcessEnv): Promise<number> {
  if (args.includes('--help') || args.includes('-h')) {
    process.stdout.write(`${HELP}\n`)
    return EXIT.ok
  }
  const unknown = args.find(arg => arg !== '--demo')
  if (unknown !== undefined) {
    process.stderr.write(`redrive: unknown argument ${JSON.stringify(unknown)}; ${USAGE}\n`)
    return EXIT.usage
  }
  const screen = openScreen(process.stdout, env)
  try {
    await start(screen, env)
    return EXIT.ok
  } catch (error) {
    process.stderr.write(`redrive: ${oneLine(error)}\n`)
    return EXIT.error
  } finally {
    screen.close()
  }
}

async function start(screen: Screen, env: NodeJS.ProcessEnv): Promise<void> {
  const stop = stopSignal(() => {
    screen.close()
    process.stderr.write('redrive: stopped at once; what was running is rescued when its lease has lapsed\n')
    process.exit(EXIT.interrupted)
  })
  const database = databaseOf(env)
  const news = collectNews()
  const redrive = await openRedrive({
    ...(database !== undefined && { database }),
    // On a terminal a log line would tear the table.
    ...(screen.redraws && { logger: news.logger }),
  })
  try {
    const { folder, schema } = readSettings(env)
    const place =
      database === undefined
        ? { where: `an embedded Postgres in ${folder}`, schema: undefined }
        : { where: `a Postgres server, schema ${schema}`, schema }
    await runDemo(redrive, { screen, news, stop, colours: !env.NO_COLOR, ...place })
  } finally {
    await redrive.close()
  }
}

/** Aborts at the first signal to stop; `force` is called at a second Ctrl-C. */
function stopSignal(force: () => void): AbortSignal {
  const stop = new AbortController()
  let askedAt = 0
  const ask = () => {
    if (!stop.signal.aborted) askedAt = systemClock.monotonic()
    stop.abort()
  }
  process.on('SIGINT', () => {
    if (stop.signal.aborted && systemClock.monotonic() - askedAt > SAME_SIGNAL_MS) force()
    ask()
  })
  process.on('SIGTERM', ask)
  process.on('SIGHUP', ask)
  // Nobody reads any more, as after `npm start | head`.
  process.stdout.on('error', ask)
  return stop.signal
}

function oneLine(error: unknown): string {
  const { message, code } = error as { message?: unknown; code?: unknown }
  const text = printable(String(message || error)).trim()
  return typeof code === 'string' ? `${text} [${code}]` : text
}
