// The provider worker as a process of its own: ledger, carrier, worker and HTTP, opened in this order and closed in the other.
import { isRedriveError, type Log, type Logger, openRedrive, type Redrive } from 'redrive'
import { createHttp, serve } from 'redrive/http'
import { transportsOf } from './carrier.js'
import { type Ending, endAll } from './endings.js'
import { createProviderApp, type ProviderApp } from './provider-app.js'
import type { Environment } from './settings.js'

export interface StationOptions {
  readonly env: Environment
  readonly log: Log
  /** The library's own, where it is not said. */
  readonly logger?: Logger
  /** Provider modules, beside those of PROVIDER_MODULES. */
  readonly modules?: readonly string[]
  readonly port?: number
  readonly host?: string
}

export interface Station {
  readonly app: ProviderApp
  readonly redrive: Redrive
  /** `http://127.0.0.1:3000` */
  readonly url: string
  /** Made at a first start that finds none; told this once. */
  readonly token: string | undefined
  close(): Promise<void>
}

export async function openStation(options: StationOptions): Promise<Station> {
  const { env, log, logger, modules = [], port, host } = options
  const app = createProviderApp({ ...env, PROVIDER_MODULES: [env.PROVIDER_MODULES ?? '', ...modules].join(',') })
  const database = env.DATABASE_URL || (env.PGHOST ? 'postgres:///' : undefined)
  const redrive = await openRedrive({
    env,
    ...(logger && { logger }),
    transports: await transportsOf(app.settings),
    ...(database !== undefined && { database }),
  })
  const endings: Ending[] = [() => redrive.close()]
  const close = () => endAll(endings)
  try {
    endings.push(await app.setup({ redrive, env, log }))
    const http = createHttp(redrive, { env })
    const worker = redrive.work([app.providerOperation], { concurrency: app.settings.concurrency })
    endings.push(() => worker.stop())
    await worker.ready
    const served = await serve(http, { ...(port !== undefined && { port }), ...(host !== undefined && { host }) })
    // Not one after the other: while requests end, no job begins.
    endings.push(() => Promise.all([worker.stop(), served.close()]))
    return { app, redrive, url: served.url, token: await firstToken(redrive, env), close }
  } catch (error) {
    await close().catch(() => {}) // why it did not start is what is to be said
    throw error
  }
}

async function firstToken({ operator }: Redrive, env: Environment): Promise<string | undefined> {
  if (env.REDRIVE_TOKENS || (await operator.tokens.list()).length > 0) return undefined
  try {
    return (await operator.tokens.create('first', ['admin', 'payload'], { actor: 'provider worker' })).secret
  } catch (error) {
    // Another process was faster; it has shown its own.
    if (isRedriveError(error, 'TOKEN_EXISTS')) return undefined
    throw error
  }
}
