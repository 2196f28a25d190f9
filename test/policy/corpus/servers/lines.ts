// A server on a raw socket that says something on connection and answers each line it gets: enough of SMTP and of
// Redis for their clients to build the errors they build in earnest.
import { type AddressInfo, createServer, type Socket } from 'node:net'

export interface Script {
  /** Said at once to whoever connects. */
  readonly greeting?: string
  /** The answer to a line; undefined: none. 'hang up' ends the connection. */
  readonly answer: (line: string) => string | undefined
}

export async function withLineServer<T>(script: Script, use: (port: number) => Promise<T>): Promise<T> {
  return withSocketServer(socket => {
    if (script.greeting !== undefined) socket.write(script.greeting)
    let rest = ''
    socket.on('data', data => {
      const lines = (rest + data.toString('latin1')).split('\r\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const answer = script.answer(line)
        if (answer === 'hang up') return void socket.destroy()
        if (answer !== undefined) socket.write(answer)
      }
    })
  }, use)
}

export async function withSocketServer<T>(
  serve: (socket: Socket) => void,
  use: (port: number) => Promise<T>,
): Promise<T> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => {})
    serve(socket)
  })
  await new Promise<void>(done => server.listen(0, '127.0.0.1', done))
  try {
    return await use((server.address() as AddressInfo).port)
  } finally {
    for (const socket of sockets) socket.destroy()
    await new Promise(done => server.close(done))
  }
}

/** A port of this machine on which nobody listens. */
export async function closedPort(): Promise<number> {
  return withSocketServer(
    () => {},
    async port => port,
  )
}
