// A server that speaks S3, in this process, behind a door of ours: it counts the bytes that go out, and can be away
// (connections are refused, running ones break) or silent (nobody answers, nothing is closed).
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readdir, rename, rm } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import S3rver from '@20minutes/s3rver'
import { GetObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll } from 'vitest'

export const BUCKET = 'media'
/** The only ones that this server knows. */
const KEYS = { S3_ACCESS_KEY: 'S3RVER', S3_SECRET_KEY: 'S3RVER' }

// How the server names its files.
const OBJECT = '._S3rver_object'
const UPLOADS = '._S3rver_uploads'

export interface TestS3 {
  /** Settings of a worker that uses it. */
  readonly env: Readonly<Record<string, string>>
  /** What the server sent to everybody so far, protocol included. */
  readonly sent: number
  /** Requests of each method so far. */
  readonly requests: Readonly<Record<string, number>>
  put(key: string, body: Uint8Array): Promise<void>
  get(key: string): Promise<Buffer>
  list(prefix: string): Promise<string[]>
  /** Uploads in parts that were begun and neither completed nor given up. */
  uploads(): Promise<string[]>
  /** Nobody listens any more, and every connection breaks. */
  leave(): Promise<void>
  comeBack(): Promise<void>
  /** From now on no answer gets through, on any connection. */
  fallSilent(): void
  close(): Promise<void>
}

const open = new Set<TestS3>()
afterAll(() => Promise.all([...open].map(s3 => s3.close())))

export async function startS3(): Promise<TestS3> {
  const directory = await mkdtemp(join(tmpdir(), 'redrive-s3-'))
  const server = new S3rver({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory,
    configureBuckets: [{ name: BUCKET }],
  })
  writeWhole(server, directory)
  addWhatIsMissing(server, directory)
  const { port } = await server.run()
  const requests: Record<string, number> = {}
  server.httpServer.on('request', ({ method = '' }) => {
    requests[method] = (requests[method] ?? 0) + 1
  })
  const door = await openDoor(port)
  // Straight to the server: what the test itself does is neither counted nor cut off.
  const client = new S3Client({
    endpoint: `http://127.0.0.1:${port}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: KEYS.S3_ACCESS_KEY, secretAccessKey: KEYS.S3_SECRET_KEY },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  })
  const s3: TestS3 = {
    env: { S3_ENDPOINT: `http://127.0.0.1:${door.port}`, S3_BUCKET: BUCKET, ...KEYS },
    get sent() {
      return door.sent()
    },
    requests,
    put: async (key, body) => void (await client.send(new PutObjectCommand({ Bucket: BUCKET, Key: key, Body: body }))),
    get: async key => {
      const { Body } = await client.send(new GetObjectCommand({ Bucket: BUCKET, Key: key }))
      return Buffer.from((await Body?.transformToByteArray()) ?? [])
    },
    list: async prefix =>
      (await readdir(join(directory, BUCKET), { recursive: true }))
        .filter(name => name.startsWith(prefix) && name.endsWith(OBJECT))
        .map(name => name.slice(0, -OBJECT.length)),
    uploads: () => readdir(join(directory, BUCKET, UPLOADS)).catch(() => []),
    leave: door.leave,
    comeBack: door.comeBack,
    fallSilent: door.fallSilent,
    async close() {
      if (!open.delete(s3)) return
      client.destroy()
      await door.leave()
      server.httpServer.closeAllConnections()
      await server.close()
      await rm(directory, { recursive: true, force: true })
    },
  }
  open.add(s3)
  return s3
}

/** The server writes an object in place as it arrives; S3 shows it when it is complete. So does this one, then. */
function writeWhole({ store }: S3rver, directory: string): void {
  const putContent = store.putContent.bind(store)
  store.putContent = async (path, content) => {
    const arriving = join(directory, `arriving-${randomUUID()}`)
    try {
      const written = await putContent(arriving, content)
      await rename(arriving, path)
      return written
    } catch (error) {
      await rm(arriving, { force: true })
      throw error
    }
  }
}

/** It cannot give up an upload in parts, and does not look at If-Match. */
function addWhatIsMissing({ middleware }: S3rver, directory: string): void {
  middleware.unshift(async (ctx, next) => {
    const { uploadId } = ctx.query
    if (ctx.method === 'DELETE' && typeof uploadId === 'string' && /^\w+$/.test(uploadId)) {
      await rm(join(directory, BUCKET, UPLOADS, uploadId), { recursive: true })
      ctx.status = 204
      return
    }
    await next()
    const wanted = ctx.get('if-match')
    if (wanted === '' || wanted === ctx.response.get('etag')) return
    if (ctx.body instanceof Readable) ctx.body.destroy()
    ctx.body = '<Error><Code>PreconditionFailed</Code></Error>'
    ctx.status = 412
  })
}

async function openDoor(target: number) {
  const sockets = new Set<Socket>()
  let sent = 0
  let silent = false
  const keep = (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.on('close', () => sockets.delete(socket))
  }
  const pass = (client: Socket) => {
    const upstream = connect(target, '127.0.0.1')
    keep(client)
    keep(upstream)
    client.on('data', data => void (silent || upstream.write(data)))
    client.on('close', () => upstream.destroy())
    // With backpressure, so that what is counted is what was wanted and not what the server could send.
    upstream.on('data', data => {
      if (silent) return
      sent += data.length
      if (!client.write(data)) {
        upstream.pause()
        client.once('drain', () => upstream.resume())
      }
    })
    upstream.on('close', () => void (silent || client.destroy()))
  }
  let server: Server | undefined
  const listen = async (port: number) => {
    server = createServer(pass)
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    return (server.address() as AddressInfo).port
  }
  const port = await listen(0)
  return {
    port,
    sent: () => sent,
    fallSilent: () => {
      silent = true
    },
    leave: async () => {
      const closed = server
      server = undefined
      if (!closed) return
      const gone = once(closed, 'close')
      closed.close()
      for (const socket of sockets) socket.destroy()
      await gone
    },
    comeBack: async () => {
      silent = false
      await listen(port)
    },
  }
}
