// The API behind a server of its own: on this machine only unless told otherwise, with limits on whoever is slow.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { systemClock } from '../domain/clock.js'
import type { Http } from './create-http.js'

export interface ServeOptions {
  /** 0: any that is free. */
  readonly port?: number
  readonly host?: string
}

export interface Served {
  /** `http://127.0.0.1:3000` */
  readonly url: string
  /** Takes no more requests, and resolves when those that are under way are answered. */
  close(): Promise<void>
}

const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 30_000
/** Whoever has not been answered by then never will be. */
const CLOSE_LIMIT_MS = 10_000
const SWEEP_MS = 20

export async function serve(http: Http, { port = 3_000, host = '127.0.0.1' }: ServeOptions = {}): Promise<Served> {
  const server = createServer(
    { headersTimeout: HEADERS_TIMEOUT_MS, requestTimeout: REQUEST_TIMEOUT_MS },
    getRequestListener(http.fetch, { overrideGlobalObjects: false }),
  )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, () => {
      server.off('error', reject)
      resolve()
    })
  })
  const { port: bound } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${bound}`,
    close: () =>
      new Promise(resolve => {
        const limit = systemClock.timer(CLOSE_LIMIT_MS, () => server.closeAllConnections())
        // Again and again: a connection whose last request has just been answered would be kept for the next one.
        const sweep = () => {
          server.closeIdleConnections()
          sweeping = systemClock.timer(SWEEP_MS, sweep)
        }
        let sweeping = systemClock.timer(0, sweep)
        server.close(() => {
          limit.cancel()
          sweeping.cancel()
          resolve()
        })
        http.close()
      }),
  }
}
