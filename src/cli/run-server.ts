// A server from its first line to its last: opens everything, says what it found and what to try, shows what happens, and
// leaves cleanly.
import { DEMO_JOBS } from '../demo/jobs.js'
import { type LedgerState, liveJobs, openDeadLetters, readLedger } from '../demo/ledger-state.js'
import { farewell, messageOf, showLive } from '../demo/live.js'
import { collectNews } from '../demo/news.js'
import { openScreen, type Screen, type Terminal } from '../demo/screen.js'
import { produce } from '../demo/stream.js'
import { parseTokens } from '../http/configured-tokens.js'
import { createHttp, serve } from '../http/index.js'
import type { Logger } from '../index.js'
import { databaseOf, readSettings, serverSettings } from '../settings.js'
import type { Host } from './cli.js'
import { firstToken } from './first-token.js'
import { greeting } from './greeting.js'
import { listening } from './listening.js'
import { jobModules } from './modules.js'
import { loggerFor } from './process-logger.js'
import { openStation, type Station } from './station.js'
import { aborted, stopSignal } from './stop-signal.js'
import type { ServerOptions } from './work-options.js'

export async function runServer(host: Host, paths: readonly string[], options: ServerOptions): Promise<void> {
  const { env, clock } = host
  const settings = serverSettings(env)
  // Before anything is opened, as every other setting.
  parseTokens(env.REDRIVE_TOKENS ?? '')
  const at = { port: options.port ?? settings.port, host: options.host ?? settings.host }
  const screen = openScreen(host.stdout as Terminal, env)
  const stop = stopSignal(host, () => screen.close())
  const news = collectNews()
  // On a terminal a log line would tear the table.
  const logger = screen.redraws ? news.logger : loggerFor(host)
  const jobs = options.demo ? DEMO_JOBS : []
  try {
    const modules = await jobModules(paths, process.cwd())
    const station = await openStation({ ...options, env, clock, logger, modules, jobs })
    try {
      const { grace, demo = false } = options
      await run({ host, at, station, screen, news, logger, stop, demo, grace })
    } finally {
      await station.close(options.grace, async () => {
        if (stop.aborted) for (const text of await farewell(station.redrive, news)) screen.say(text)
      })
    }
  } finally {
    screen.close()
  }
}

interface Running {
  readonly host: Host
  readonly at: { readonly port: number; readonly host: string }
  readonly station: Station
  readonly screen: Screen
  readonly news: ReturnType<typeof collectNews>
  readonly logger: Logger
  readonly stop: AbortSignal
  readonly demo: boolean
  readonly grace: number | undefined
}

/** Until it is told to stop. Nothing is printed before all of it runs: what fails on the way is one line. */
async function run({ host, at, station, screen, news, logger, stop, demo, grace }: Running): Promise<void> {
  const { redrive, jobs } = station
  const { env, clock } = host
  let found = await readLedger(redrive)
  const onError = (error: unknown, about: object) => logger.error({ ...about, error }, 'a request failed')
  const http = createHttp(redrive, { env, onError })
  const server = await listening(at, () => serve(http, at))
  try {
    news.follow(redrive)
    await station.start()
    const token = await firstToken(redrive, env)
    const told = greeting({ ...placeOf(env), url: server.url, found, token, jobs, demo, now: clock.now() })
    for (const text of told) screen.say(text)
    const load = () => ({ live: liveJobs(found), openDeadLetters: openDeadLetters(found) })
    const trouble = (error: unknown) => news.add(`a job could not be enqueued: ${messageOf(error)}`)
    const producing = demo ? produce(redrive, load, stop, trouble) : undefined
    const onState = (state: LedgerState) => {
      found = state
    }
    if (demo || screen.redraws) await showLive(redrive, { screen, news, stop, colours: !env.NO_COLOR }, onState)
    else await aborted(stop)
    const running = `${station.active()} running ${station.active() === 1 ? 'job' : 'jobs'}`
    screen.say(`stopping: letting ${running} finish (Ctrl-C again to stop now)`)
    // Not after the requests that are under way: no job begins any more.
    station.stop(grace).catch(() => {}) // whoever closes the station hears of it
    await producing
  } finally {
    await server.close()
  }
}

function placeOf(env: Host['env']): { where: string; schema: string | undefined } {
  const { folder, schema } = readSettings(env)
  return databaseOf(env) === undefined
    ? { where: `an embedded Postgres in ${folder}`, schema: undefined }
    : { where: `a Postgres server, schema ${schema}`, schema }
}
