// A network between a client and a server that a test can break: frozen (nobody answers any more, nothing is closed),
// cut (every connection breaks), or swallowing answers (the server did what it was asked, and nobody hears of it).
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface Proxy {
  /** The server's address, through the proxy. */
  readonly url: string
  /** From now on nothing gets through, in either direction, on any connection. */
  freeze(): void
  /** Breaks every connection; new ones get through again. */
  cut(): void
  /** From now on new connections are refused at once, or get through again. */
  refuse(refused: boolean): void
  /** The next so many answers of the server are lost, and each one's connection with it; those before get through. */
  swallowAnswers(answers: number, before?: number): void
  /** How many answers were lost. */
  readonly swallowed: number
  close(): Promise<void>
}

export async function openProxy(serverUrl: string): Promise<Proxy> {
  const target = new URL(serverUrl)
  const sockets = new Set<Socket>()
  let frozen = false
  let refusing = false
  let toSwallow = 0
  let toPass = 0
  let swallowed = 0
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const server = createServer(client => {
    if (refusing) return void client.destroy()
    const upstream = connect(Number(target.port || 5432), target.hostname)
    keep(client)
    keep(upstream)
    const pass = (from: Socket, to: Socket) => {
      from.on('data', data => void (frozen || to.write(data)))
      from.on('close', () => void (frozen || to.destroy()))
    }
    pass(client, upstream)
    upstream.prependListener('data', () => {
      if (toSwallow === 0 || client.destroyed) return
      toPass -= 1
      if (toPass >= 0) return
      toSwallow -= 1
      swallowed += 1
      client.destroy()
    })
    pass(upstream, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = new URL(serverUrl)
  url.hostname = '127.0.0.1'
  url.port = String((server.address() as AddressInfo).port)
  const cut = () => {
    frozen = false
    for (const socket of sockets) socket.destroy()
  }
  return {
    url: url.href,
    freeze() {
      frozen = true
    },
    cut,
    refuse(refused) {
      refusing = refused
    },
    swallowAnswers(answers, before = 0) {
      toSwallow = answers
      toPass = before
    },
    get swallowed() {
      return swallowed
    },
    async close() {
      const closed = once(server, 'close')
      server.close()
      cut()
      await closed
    },
  }
}
