// Node's own fetch, and undici, the client under it.
import { Agent, errors, interceptors, request } from 'undici'
import { withHttpServer } from '../servers/http.js'
import { closedPort, withSocketServer } from '../servers/lines.js'
import { caught, type Family, like, shape } from './shape.js'

const fetching = (path: string, init?: RequestInit) =>
  withHttpServer(url => caught(async () => (await fetch(`${url}${path}`, init)).text()))

/** What a careful handler writes. */
async function orThrow(url: string): Promise<Response> {
  const response = await fetch(url)
  if (!response.ok) throw new Error(`GET ${url} failed: ${response.status} ${response.statusText}`)
  return response
}

const viaUndici = (path: string, options: Agent.Options = {}) =>
  withHttpServer(async url => {
    const dispatcher = new Agent(options)
    try {
      return await caught(async () => (await request(`${url}${path}`, { dispatcher })).body.text())
    } finally {
      await dispatcher.destroy()
    }
  })

const throwing = (path: string) =>
  withHttpServer(async url => {
    const dispatcher = new Agent().compose(interceptors.responseError())
    try {
      return await caught(() => request(`${url}${path}`, { dispatcher }))
    } finally {
      await dispatcher.destroy()
    }
  })

export const fetches: Family = {
  family: 'fetch and undici',
  shapes: [
    shape('fetch: a closed port', 'network', async () => {
      const port = await closedPort()
      return caught(() => fetch(`http://127.0.0.1:${port}`))
    }),
    shape('fetch: every address of localhost refused', 'network', async () => {
      const port = await closedPort()
      return caught(() => fetch(`http://localhost:${port}`))
    }),
    shape('fetch: a name that does not exist', 'network', () => caught(() => fetch('http://nobody.invalid'))),
    shape('fetch: cut off before the answer', 'network', () => fetching('/cut')),
    shape('fetch: cut off in the middle of it', 'network', () => fetching('/half')),
    shape('fetch: an answer that is not HTTP', 'network', () => fetching('/garbage')),
    shape('fetch: TLS with somebody who does not speak it', 'network', () =>
      withHttpServer(url => caught(() => fetch(url.replace('http:', 'https:')))),
    ),
    shape('fetch: redirected for ever', 'permanent', () => fetching('/loop')),
    shape('fetch: a redirect that is not wanted', 'permanent', () => fetching('/loop', { redirect: 'error' })),
    shape('fetch: not an address', 'validation', () => caught(() => fetch('not an address'))),
    shape('fetch: a scheme nobody knows', 'permanent', () => caught(() => fetch('gopher://a.test'))),
    shape('fetch: a port that browsers block', 'permanent', () => caught(() => fetch('http://127.0.0.1:25'))),
    shape('fetch: a header that is none', 'permanent', () =>
      caught(() => fetch('http://127.0.0.1', { headers: { 'not a header': 'x' } })),
    ),
    shape('fetch: a body read twice', 'permanent', () =>
      withHttpServer(url =>
        caught(async () => {
          const response = await fetch(`${url}/200`)
          await response.text()
          await response.text()
        }),
      ),
    ),
    shape('fetch: HTML where JSON should be', 'permanent', () =>
      withHttpServer(url => caught(async () => (await fetch(url)).json()), { body: '<html>' }),
    ),
    shape('fetch: took too long', 'transient', () => fetching('/silent', { signal: AbortSignal.timeout(20) })),
    shape('fetch: aborted', 'transient', () => fetching('/silent', { signal: AbortSignal.abort() })),
    shape('fetch: the answer itself, thrown', 'transient', () => withHttpServer(url => fetch(`${url}/503`))),
    shape('fetch: the answer itself, asking to wait', 'rate_limited', () =>
      withHttpServer(url => fetch(url), { status: 429, headers: { 'retry-after': '7' } }),
    ),
    shape('fetch: a status, told in words', 'transient', () =>
      withHttpServer(url => caught(() => orThrow(`${url}/502`))),
    ),
    shape('fetch: a conflict, told in words', 'permanent', () =>
      withHttpServer(url => caught(() => orThrow(`${url}/409`))),
    ),

    shape('undici: no headers in time', 'network', () => viaUndici('/silent', { headersTimeout: 20 })),
    shape('undici: cut off', 'network', () => viaUndici('/cut')),
    shape('undici: cut off in the body', 'network', () => viaUndici('/half')),
    shape('undici: an answer that is not HTTP', 'network', () => viaUndici('/garbage')),
    shape('undici: headers that do not end', 'permanent', () =>
      withSocketServer(
        socket => socket.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(30_000)}\r\n\r\n`),
        port => caught(() => request(`http://127.0.0.1:${port}`)),
      ),
    ),
    shape('undici: more than was allowed', 'permanent', () => viaUndici('/200', { maxResponseSize: 2 })),
    shape('undici: a status, 503', 'transient', () => throwing('/503')),
    shape('undici: a status, 422', 'validation', () => throwing('/422')),
    shape('undici: a wrong argument', 'permanent', () => caught(() => request('ftp://a.test'))),
    shape('undici: no connection in time', 'network', () => new errors.ConnectTimeoutError('Connect Timeout Error')),
    shape('undici: the client was destroyed', 'transient', () => new errors.ClientDestroyedError()),
    shape('undici: retried and still 429', 'rate_limited', () =>
      like('RequestRetryError', 'Request failed', {
        code: 'UND_ERR_REQ_RETRY',
        statusCode: 429,
        headers: { 'retry-after': '2' },
      }),
    ),
  ],
}
