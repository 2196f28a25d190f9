// The provider worker as a process of its own: ledger, carrier, worker and HTTP, opened in this order and closed in the other.
import type { Log, Logger, Redrive } from 'redrive'
import { openRedrive } from 'redrive'
import { createHttp, serve } from 'redrive/http'
import { transportsOf } from './carrier.js'
import { createProviderApp, type ProviderApp } from './provider-app.js'
import type { Environment } from './settings.js'

export interface StationOptions {
  readonly env: Environment
  readonly logger: Logger
  /** Provider modules, beside those of PROVIDER_MODULES. */
  readonly modules?: readonly string[]
  readonly port?: number
  readonly host?: string
}

export interface Station {
  readonly app: ProviderApp
  readonly redrive: Redrive
  readonly log: Log
  /** `http://127.0.0.1:3000` */
  readonly url: string
  /** Made at a first start that finds none; told this once. */
  readonly token: string | undefined
  close(): Promise<void>
}

export async function openStation({ env, logger, modules = [], port, host }: StationOptions): Promise<Station> {
  const app = createProviderApp({ ...env, PROVIDER_MODULES: [env.PROVIDER_MODULES ?? '', ...modules].join(',') })
  const database = env.DATABASE_URL || (env.PGHOST ? 'postgres:///' : undefined)
  const redrive = await openRedrive({
    env,
    logger,
    transports: await transportsOf(app.settings),
    ...(database !== undefined && { database }),
  })
  const endings: (() => void | Promise<void>)[] = [() => redrive.close()]
  const close = async () => {
    for (const end of endings.splice(0).reverse()) await end()
  }
  try {
    const log = logOf(logger)
    endings.push(await app.setup({ redrive, env, log }))
    const http = createHttp(redrive, { env })
    const worker = redrive.work([app.providerOperation], { concurrency: app.settings.concurrency })
    endings.push(() => worker.stop())
    await worker.ready
    const served = await serve(http, { ...(port !== undefined && { port }), ...(host !== undefined && { host }) })
    endings.push(() => served.close())
    return { app, redrive, log, url: served.url, token: await firstToken(redrive, env), close }
  } catch (error) {
    await close()
    throw error
  }
}

async function firstToken({ operator }: Redrive, env: Environment): Promise<string | undefined> {
  if (env.REDRIVE_TOKENS || (await operator.tokens.list()).length > 0) return undefined
  return (await operator.tokens.create('first', ['admin', 'payload'], { actor: 'provider worker' })).secret
}

/** A logger as handlers have it: words first. */
function logOf(logger: Logger): Log {
  const at =
    (level: keyof Logger) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      logger[level](fields, message)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
