// What a worker serves: its metrics, to whoever has a token, and that it is alive. Nothing else of the API.
import { createHttp, type Served, serve } from '../http/index.js'
import type { Redrive } from '../index.js'
import { listening } from './listening.js'

const SERVED = new Set(['/metrics', '/healthz'])

export function serveMetrics(
  redrive: Redrive,
  env: Readonly<Record<string, string | undefined>>,
  at: { readonly port: number; readonly host: string },
): Promise<Served> {
  const http = createHttp(redrive, { env })
  const fetch: typeof http.fetch = async (request, serverEnv) =>
    SERVED.has(new URL(request.url).pathname) ? http.fetch(request, serverEnv) : new Response(null, { status: 404 })
  return listening(at, () => serve({ ...http, fetch }, at))
}
