// S3 as storage, at any endpoint that speaks it (AWS, MinIO, Ceph, …). Redrive does the retrying, so the SDK does none:
// attempts would multiply. Reads are pinned to the version that was opened; large writes go in parts, which are
// given up when one fails.
import { Readable } from 'node:stream'
import { GetObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { Upload } from '@aws-sdk/lib-storage'
import { KindError, PermanentError } from 'redrive'
import { HEAD_BYTES, type Storage, type StoredObject, type WriteOptions } from '../storage.js'
import { s3Failure } from './s3-failure.js'

export interface S3Settings {
  readonly endpoint: string | undefined
  readonly bucket: string
  readonly region: string
  /** Without: as the SDK finds them (profile, role of the machine, …). */
  readonly credentials: { readonly accessKeyId: string; readonly secretAccessKey: string } | undefined
  readonly connectMs?: number
  readonly idleMs?: number
}

const CONNECT_MS = 5_000
const IDLE_MS = 20_000
const PART_BYTES = 8 * 1024 * 1024
const MOST_SOCKETS = 200
const CHECK_MS = 10_000
const ABSENT_KEY = 'processed/.is-anybody-there'

export class S3Storage implements Storage {
  readonly name: string
  readonly #client: S3Client
  readonly #bucket: string

  constructor({ endpoint, bucket, region, credentials, connectMs = CONNECT_MS, idleMs = IDLE_MS }: S3Settings) {
    this.name = `s3://${bucket}`
    this.#bucket = bucket
    const agent = { keepAlive: true, maxSockets: MOST_SOCKETS }
    this.#client = new S3Client({
      region,
      maxAttempts: 1,
      // Stores other than AWS often know neither buckets as host names nor the newer checksums.
      ...(endpoint !== undefined && { endpoint, forcePathStyle: true }),
      ...(credentials !== undefined && { credentials }),
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: connectMs, socketTimeout: idleMs, httpAgent: agent, httpsAgent: agent },
    })
  }

  /** By an object that is not there: asking for the bucket itself would need one more permission. */
  async check(): Promise<void> {
    await this.#get(ABSENT_KEY, 'bytes=0-0', undefined, AbortSignal.timeout(CHECK_MS)).catch(error => {
      const absent = error?.$metadata?.httpStatusCode === 404 && error.name !== 'NoSuchBucket'
      if (!absent) throw s3Failure(error, ABSENT_KEY, this.name)
    })
  }

  open(key: string, signal: AbortSignal): Promise<StoredObject> {
    return this.#failing(key, () => this.#opened(key, signal), signal)
  }

  /** One request tells size and version, and brings the beginning: there is no HEAD before it. */
  async #opened(key: string, signal: AbortSignal): Promise<StoredObject> {
    const first = await this.#get(key, `bytes=0-${HEAD_BYTES - 1}`, undefined, signal).catch(error => {
      if (error?.$metadata?.httpStatusCode === 416) return undefined // an empty object has no first byte
      throw error
    })
    const total = /\/(\d+)$/.exec(first?.ContentRange ?? '')?.[1] ?? first?.ContentLength ?? 0
    const ranged = first?.ContentRange !== undefined || Number(total) <= HEAD_BYTES
    // Some stores announce a byte of an empty object and never send it.
    const awaited = ranged && Number(total) > 0
    if (!awaited) (first?.Body as Readable | undefined)?.destroy()
    if (!ranged) throw new PermanentError(`${this.name} does not answer ranges: it cannot be used`)
    return {
      key,
      size: Number(total),
      head: (awaited && (await first?.Body?.transformToByteArray())) || new Uint8Array(),
      read: (start, end, reading) =>
        this.#failing(key, () => this.#body(key, start, end, first?.ETag, reading), reading),
      close: async () => {},
    }
  }

  async write(key: string, body: Uint8Array | Readable, { contentType, signal }: WriteOptions): Promise<void> {
    const upload = new Upload({
      client: this.#client,
      params: { Bucket: this.#bucket, Key: key, Body: body, ContentType: contentType },
      partSize: PART_BYTES,
      queueSize: 2,
    })
    const abort = () => void upload.abort().catch(() => {})
    signal?.addEventListener('abort', abort, { once: true })
    try {
      signal?.throwIfAborted()
      await this.#failing(key, () => upload.done(), signal).catch(error => {
        // Giving up the parts may fail as well, and would be told instead of why they were given up.
        throw (body instanceof Readable && body.errored) || error
      })
    } finally {
      signal?.removeEventListener('abort', abort)
    }
  }

  async close(): Promise<void> {
    this.#client.destroy()
  }

  async #body(key: string, start: number, end: number, etag: string | undefined, signal: AbortSignal) {
    const { Body } = await this.#get(key, `bytes=${start}-${end - 1}`, etag, signal)
    if (!Body) throw new Error('S3 answered without a body')
    return this.#readable(key, Body as Readable)
  }

  /** What breaks while it is read is told in the same words as what cannot be opened. */
  async *#readable(key: string, body: Readable): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of body) yield chunk
    } catch (error) {
      throw s3Failure(error, key, this.name)
    }
  }

  #get(key: string, range: string, etag: string | undefined, signal: AbortSignal) {
    const pinned = etag === undefined ? {} : { IfMatch: etag }
    const command = new GetObjectCommand({ Bucket: this.#bucket, Key: key, Range: range, ...pinned })
    return this.#client.send(command, { abortSignal: signal })
  }

  async #failing<T>(key: string, ask: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      signal?.throwIfAborted()
      throw error instanceof KindError ? error : s3Failure(error, key, this.name)
    }
  }
}
