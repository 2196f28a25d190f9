// Lets FFmpeg seek in an object without having it: a web server for this process alone (loopback, a random port, an
// unguessable path for each object) that answers ranges out of storage. FFmpeg asks for "from here to the end" and hangs
// up when it has enough, so storage is asked for small pieces that grow while it reads on: a frame from the middle of
// 2 GB costs a few megabytes.
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { StoredObject } from './storage.js'

const FIRST_PIECE_BYTES = 128 * 1024
const LARGEST_PIECE_BYTES = 2 * 1024 * 1024

/** One object on offer. */
export interface Offer {
  readonly url: string
  /** Bytes that storage was asked for, the head included. */
  readonly bytesRead: number
  /** Whether storage is being waited for, or was when the reader last went away. */
  readonly waiting: boolean
  /** Why storage could not be read, if so: what FFmpeg then says is only a consequence. */
  readonly failure: unknown
  close(): void
}

export class RangedReads {
  readonly #offers = new Map<string, Offered>()
  #server: Promise<Server> | undefined

  async offer(object: StoredObject, signal: AbortSignal): Promise<Offer> {
    const { port } = (await this.#listening()).address() as AddressInfo
    const path = `/${randomBytes(24).toString('base64url')}`
    const offered = new Offered(`http://127.0.0.1:${port}${path}`, object, signal, () => this.#offers.delete(path))
    this.#offers.set(path, offered)
    return offered
  }

  /** One that failed is tried again by whoever comes next. */
  #listening(): Promise<Server> {
    this.#server ??= listening((request, response) => this.#answer(request, response)).catch(error => {
      this.#server = undefined
      throw error
    })
    return this.#server
  }

  async close(): Promise<void> {
    const server = await this.#server?.catch(() => undefined)
    this.#server = undefined
    for (const offer of this.#offers.values()) offer.close()
    server?.closeAllConnections()
    await new Promise<void>(resolve => (server ? server.close(() => resolve()) : resolve()))
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    const offered = this.#offers.get(request.url ?? '')
    if (!offered || request.method !== 'GET') response.writeHead(404).end()
    else void offered.answer(request, response)
  }
}

class Offered implements Offer {
  readonly url: string
  bytesRead: number
  waiting = false
  failure: unknown
  readonly #object: StoredObject
  readonly #closed = new AbortController()
  readonly #signal: AbortSignal
  readonly #onClose: () => void

  constructor(url: string, object: StoredObject, signal: AbortSignal, onClose: () => void) {
    this.url = url
    this.#object = object
    this.bytesRead = object.head.length
    this.#signal = AbortSignal.any([signal, this.#closed.signal])
    this.#onClose = onClose
  }

  close(): void {
    this.#onClose()
    this.#closed.abort()
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { size } = this.#object
    const range = rangeOf(request.headers.range, size)
    if (range === undefined) {
      response.writeHead(416, { 'content-range': `bytes */${size}` }).end()
      return
    }
    const gone = new AbortController()
    const reader = new Reader(response, () => gone.abort())
    response.writeHead(206, {
      'content-type': 'application/octet-stream',
      'content-length': range.end - range.start,
      'content-range': `bytes ${range.start}-${range.end - 1}/${size}`,
      'accept-ranges': 'bytes',
      connection: 'close',
    })
    const signal = AbortSignal.any([this.#signal, gone.signal])
    try {
      await this.#send(reader, range, signal)
      response.end()
    } catch (error) {
      if (!signal.aborted) this.failure ??= error
      response.destroy()
    }
  }

  async #send(reader: Reader, { start, end }: Range, signal: AbortSignal): Promise<void> {
    const { head } = this.#object
    let at = start
    if (at < head.length) {
      await reader.give(head.subarray(at, end))
      at = Math.min(head.length, end)
    }
    for (let piece = FIRST_PIECE_BYTES; at < end; piece = Math.min(piece * 2, LARGEST_PIECE_BYTES)) {
      const until = Math.min(at + piece, end)
      signal.throwIfAborted()
      for await (const chunk of this.#pieces(at, until, signal)) {
        this.bytesRead += chunk.length
        at += chunk.length
        await reader.give(chunk)
      }
      if (at < until) throw new Error(`Storage ended at byte ${at} of ${this.#object.size}`)
    }
  }

  /** A piece of the object. What breaks off while it is waited for stays marked as such. */
  async *#pieces(start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    this.waiting = true
    for await (const chunk of await this.#object.read(start, end, signal)) {
      this.waiting = false
      yield chunk as Uint8Array
      this.waiting = true
    }
    this.waiting = false
  }
}

interface Range {
  readonly start: number
  /** Behind the last byte. */
  readonly end: number
}

/** Undefined: not to be had. No header: all of it. */
function rangeOf(header: string | undefined, size: number): Range | undefined {
  if (header === undefined) return { start: 0, end: size }
  const [, first, last] = /^bytes=(\d{1,15})-(\d{0,15})$/.exec(header) ?? []
  if (first === undefined) return undefined
  const range = { start: Number(first), end: last ? Math.min(Number(last) + 1, size) : size }
  return range.start < range.end ? range : undefined
}

/** Who reads an answer: it takes what it is given in its own time, and may go away at any. */
class Reader {
  readonly #response: ServerResponse
  #gone = false
  #goOn: (() => void) | undefined

  constructor(response: ServerResponse, onGone: () => void) {
    this.#response = response
    const gone = () => {
      this.#gone = true
      this.#goOn?.()
      onGone()
    }
    response.on('drain', () => this.#goOn?.())
    response.on('close', gone)
    response.on('error', gone)
  }

  /** Waits until it has been taken: what is not taken is not fetched either. */
  async give(chunk: Uint8Array): Promise<void> {
    if (!this.#gone && !this.#response.write(chunk)) await new Promise<void>(resolve => (this.#goOn = resolve))
    if (this.#gone) throw new Error('The reader has gone')
  }
}

async function listening(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<Server> {
  const server = createServer(answer)
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}
