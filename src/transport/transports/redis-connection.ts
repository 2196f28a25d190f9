// One connection to Redis that is made again, with backoff and jitter, whenever it breaks. Every call has a limit: what is
// not answered in time breaks the connection, because nobody knows any more what it still says. Nothing is sent twice by
// itself: a repeated XADD would be a repeated job.
import { createHash } from 'node:crypto'
import type { ConnectionOptions as TlsOptions } from 'node:tls'
import { Redis } from 'ioredis'
import { type Clock, type Random, sleep } from '../../domain/clock.js'
import type { Script } from './redis-scripts.js'

export interface ConnectionOptions {
  readonly url: string
  readonly tls?: TlsOptions | undefined
  /** What `CLIENT LIST` shows of it. */
  readonly name: string
  readonly timeoutMs: number
  readonly clock: Clock
  readonly random: Random
  readonly onError: (error: unknown) => void
  readonly onUp?: () => void
}

type Word = string | number

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 5_000
const CONNECT_LIMIT_MS = 10_000
const KEEP_ALIVE_MS = 10_000

export class RedisConnection {
  readonly #options: ConnectionOptions
  readonly #client: Redis
  readonly #closed = new AbortController()
  readonly #waiting = new Set<() => void>()
  #trouble: Error | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#client = new Redis(options.url, {
      ...(options.tls && { tls: options.tls }),
      protocol: 2,
      connectionName: options.name,
      connectTimeout: CONNECT_LIMIT_MS,
      keepAlive: KEEP_ALIVE_MS,
      enableOfflineQueue: false,
      autoResendUnfulfilledCommands: false,
      // What was not answered when the connection broke fails then and there.
      maxRetriesPerRequest: 0,
      retryStrategy: times => pauseMs(times, options.random),
      // After a failover an address may lead to a replica for a while.
      reconnectOnError: error => error.message.startsWith('READONLY'),
    })
    this.#client.on('error', error => {
      this.#trouble = bare(error)
      if (!this.#closed.signal.aborted) options.onError(this.#trouble)
    })
    this.#client.on('ready', () => {
      this.#trouble = undefined
      for (const wake of this.#waiting) wake()
      options.onUp?.()
    })
  }

  /** What was wrong when it was last tried in vain. */
  get trouble(): Error | undefined {
    return this.#trouble
  }

  get timeoutMs(): number {
    return this.#options.timeoutMs
  }

  get closed(): boolean {
    return this.#closed.signal.aborted
  }

  get up(): boolean {
    return this.#client.status === 'ready'
  }

  /** Whether it is up, as soon as it is; false when it is not within the limit, or was closed. */
  async within(limitMs: number): Promise<boolean> {
    if (this.up || this.#closed.signal.aborted) return this.up
    const come = new AbortController()
    const wake = () => come.abort()
    this.#waiting.add(wake)
    this.#closed.signal.addEventListener('abort', wake)
    await sleep(this.#options.clock, limitMs, come.signal)
    this.#closed.signal.removeEventListener('abort', wake)
    this.#waiting.delete(wake)
    return this.up
  }

  /** One command; rejects at once while it is down. */
  call(command: string, words: readonly Word[], limitMs = this.#options.timeoutMs): Promise<unknown> {
    return this.#limited(this.#client.call(command, words as Word[]), command, limitMs)
  }

  async run(
    { name, lua }: Script,
    keys: readonly string[],
    words: readonly Word[] = [],
    limitMs = this.#options.timeoutMs,
  ): Promise<unknown> {
    const rest = [keys.length, ...keys, ...words]
    try {
      return await this.#limited(this.#client.call('EVALSHA', [digestOf(lua), ...rest]), name, limitMs)
    } catch (error) {
      if (!isReply(error, 'NOSCRIPT')) throw error
      return this.#limited(this.#client.call('EVAL', [lua, ...rest]), name, limitMs)
    }
  }

  /** Lets go of what is not answered yet. */
  close(): void {
    if (this.#closed.signal.aborted) return
    this.#closed.abort()
    this.#client.disconnect()
  }

  #limited(answer: Promise<unknown>, what: string, limitMs: number): Promise<unknown> {
    return new Promise((resolve, reject) => {
      const timer = this.#options.clock.timer(limitMs, () => {
        reject(new Error(`Redis did not answer "${what}" within ${limitMs} ms`))
        if (!this.#closed.signal.aborted) this.#client.disconnect(true)
      })
      answer.then(
        value => {
          timer.cancel()
          resolve(value)
        },
        error => {
          timer.cancel()
          reject(bare(error))
        },
      )
    })
  }
}

// Full jitter: a fleet that lost its broker together must not come back together (pitfall 6).
export const pauseMs = (times: number, random: Random): number =>
  Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(times, 10)) * (0.5 + random() / 2)

/** Redis answered, and with this word: it did nothing. */
export const isReply = (error: unknown, word: string): boolean =>
  error instanceof Error && error.name === 'ReplyError' && error.message.includes(word)

/** Whether Redis itself refused: then nothing was done. */
export const isRefusal = (error: unknown): boolean => error instanceof Error && error.name === 'ReplyError'

/** The driver hangs the command on its errors, and with it payloads and passwords. */
function bare(error: unknown): Error {
  const { name, message, code } = error as Error & { code?: unknown }
  if (name === 'MaxRetriesPerRequestError') return new Error('The connection to Redis broke before it answered')
  const copy = new Error(message || `The connection to Redis failed (${String(code ?? name)})`)
  copy.name = name
  return code === undefined ? copy : Object.assign(copy, { code })
}

const digests = new Map<string, string>()

function digestOf(lua: string): string {
  const known = digests.get(lua)
  if (known !== undefined) return known
  const digest = createHash('sha1').update(lua).digest('hex')
  digests.set(lua, digest)
  return digest
}
