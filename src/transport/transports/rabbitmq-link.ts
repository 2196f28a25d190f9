// The connection to RabbitMQ: one for a process, made again with backoff and jitter whenever it breaks. Whoever needs
// channels follows it, and is told when it is up and when it is gone.
import { type ChannelModel, connect } from 'amqplib'
import { type Clock, type Random, sleep, waitAtMost } from '../../domain/clock.js'

export interface LinkFollower {
  up(model: ChannelModel): void
  down(): void
}

export interface LinkOptions {
  readonly url: string
  readonly clock: Clock
  readonly random: Random
  readonly onError: (error: unknown) => void
}

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
const CONNECT_LIMIT_MS = 10_000
const CLOSE_LIMIT_MS = 2_000
/** A peer that says nothing for twice as long is gone. */
const HEARTBEAT_S = 10

export class Link {
  readonly #options: LinkOptions
  readonly #followers = new Set<LinkFollower>()
  readonly #closed = new AbortController()
  readonly #running: Promise<void>
  #model: ChannelModel | undefined
  #waiting = new Set<() => void>()

  constructor(options: LinkOptions) {
    this.#options = options
    this.#running = this.#run()
  }

  get model(): ChannelModel | undefined {
    return this.#model
  }

  /** Told at once if it is up. */
  follow(follower: LinkFollower): () => void {
    this.#followers.add(follower)
    if (this.#model) follower.up(this.#model)
    return () => this.#followers.delete(follower)
  }

  /** The connection, as soon as there is one; undefined if there is none within the limit. */
  async within(limitMs: number): Promise<ChannelModel | undefined> {
    if (this.#model || this.#closed.signal.aborted) return this.#model
    const come = new AbortController()
    const wake = () => come.abort()
    this.#waiting.add(wake)
    await sleep(this.#options.clock, limitMs, come.signal)
    this.#waiting.delete(wake)
    return this.#model
  }

  async close(): Promise<void> {
    this.#closed.abort()
    // A peer that says nothing any more is not waited for.
    const model = this.#model
    const ended = Promise.all([model?.close().catch(() => {}), this.#running])
    await waitAtMost(this.#options.clock, CLOSE_LIMIT_MS, ended)
    if (this.#model) socketOf(model)?.destroy(new Error('RabbitMQ did not answer the close'))
  }

  async #run(): Promise<void> {
    const { clock, random, onError } = this.#options
    const { signal } = this.#closed
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        const model = await this.#connect()
        failures = 0
        await this.#until(model)
      } catch (error) {
        if (!signal.aborted) onError(withoutSecrets(error, this.#options.url))
      }
      if (signal.aborted) return
      // Full jitter: a fleet that lost its broker together must not come back together (pitfall 6).
      const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10))
      await sleep(clock, pauseMs * (0.5 + random() / 2), signal)
    }
  }

  async #connect(): Promise<ChannelModel> {
    const url = new URL(this.#options.url)
    if (!url.searchParams.has('heartbeat')) url.searchParams.set('heartbeat', String(HEARTBEAT_S))
    const socket = { timeout: CONNECT_LIMIT_MS, noDelay: true, clientProperties: { connection_name: 'redrive' } }
    return connect(url.href, socket)
  }

  /** Resolves when the connection is gone. */
  #until(model: ChannelModel): Promise<void> {
    return new Promise((resolve, reject) => {
      let reason: Error | undefined
      model.on('error', error => {
        reason = error
      })
      model.on('close', error => {
        this.#model = undefined
        for (const follower of this.#followers) follower.down()
        const why = reason ?? error
        if (why) reject(why)
        else resolve()
      })
      if (this.#closed.signal.aborted) return void model.close().catch(() => {})
      this.#model = model
      for (const follower of this.#followers) follower.up(model)
      for (const wake of this.#waiting) wake()
    })
  }
}

/** Its heartbeats would keep the process alive until they find out that nobody answers. */
const socketOf = (model: ChannelModel | undefined) =>
  (model?.connection as { stream?: { destroy(error: Error): void } } | undefined)?.stream

/** A URL has a password in it, and errors are logged. */
function withoutSecrets(error: unknown, url: string): unknown {
  const { password } = new URL(url)
  if (!(error instanceof Error) || password === '' || !error.message.includes(password)) return error
  return new Error(error.message.replaceAll(password, '***'))
}
