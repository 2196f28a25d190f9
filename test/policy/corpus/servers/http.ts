// An HTTP server that answers as its path asks: /503 with that status, /cut and /half with a connection that ends
// early, /silent never. What clients make of such answers is what the corpus classifies.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answer {
  readonly status?: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

/** Runs `use` against a server; a given answer is given to every request, else the path says which. */
export async function withHttpServer<T>(use: (url: string) => Promise<T>, answer?: Answer): Promise<T> {
  const server = createServer((request, response) => respond(request, response, answer))
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  try {
    return await use(`http://127.0.0.1:${port}`)
  } finally {
    server.closeAllConnections()
    await new Promise(done => server.close(done))
  }
}

function respond({ url = '/', socket }: IncomingMessage, response: ServerResponse, answer: Answer | undefined): void {
  if (url.startsWith('/silent')) return
  if (url.startsWith('/cut')) return void socket.destroy()
  if (url === '/half') {
    response.writeHead(200, { 'content-length': '100' })
    response.write('half', () => socket.destroy())
    return
  }
  if (url === '/garbage') return void socket.end('this is not HTTP\r\n\r\n')
  if (url === '/loop') return void response.writeHead(302, { location: '/loop' }).end()
  const status = answer?.status ?? (Number(url.slice(1)) || 200)
  response.writeHead(status, { 'content-type': 'text/plain', ...answer?.headers }).end(answer?.body ?? 'the answer')
}
