// What happens, told as it happens: one reader of the ledger for all who listen to this process, and a short memory for those
// who come back. It looks only while somebody listens, and for a moment after, so that a lost connection loses nothing.
import { randomBytes } from 'node:crypto'
import { type Clock, systemClock, type Timer } from '../domain/clock.js'
import { isRedriveError, RedriveError } from '../domain/errors.js'
import type { FleetNews } from '../domain/fleet-event.js'
import { FeedClient, type Listening } from './feed-client.js'
import { type Frame, frameOf } from './feed-frame.js'

export interface FeedOptions {
  /** How many may listen to this process at once, in all and with one token. */
  readonly mostClients: number
  readonly mostClientsPerToken: number
  /** What a client has not read yet; with more, it is dropped. */
  readonly bufferBytes: number
  /** How many events are kept for those who come back. */
  readonly memory: number
  readonly lookEveryMs: number
  readonly statisticsEveryMs: number
  readonly heartbeatMs: number
}

export const FEED: FeedOptions = {
  mostClients: 500,
  mostClientsPerToken: 200,
  bufferBytes: 262_144,
  memory: 1_000,
  lookEveryMs: 1_000,
  statisticsEveryMs: 5_000,
  heartbeatMs: 15_000,
}

/** How long the memory is kept up to date for nobody. */
const LINGER_MS = 60_000
/** After a look that failed. */
const PAUSE_MS = 5_000
/** Events are told again for a few seconds: which of them are known. */
const KNOWN_MS = 60_000

export interface FeedSource {
  readonly look: (since?: number) => Promise<FleetNews>
  readonly statistics: () => Promise<unknown>
}

export class Feed {
  readonly #source: FeedSource
  readonly #options: FeedOptions
  readonly #clock: Clock
  readonly #clients = new Set<FeedClient>()
  readonly #known = new Map<string, number>()
  #name = newName()
  #told = 0
  #memory: Frame[] = []
  #since: number | undefined
  #looking: Promise<void> | undefined
  #timer: Timer | undefined
  #beating: Timer | undefined
  #quietSince: number | undefined
  #statistics: { readonly at: number; readonly text: string; readonly frame: Frame } | undefined
  #closed = false

  constructor(source: FeedSource, options: Partial<FeedOptions> = {}, clock: Clock = systemClock) {
    this.#source = source
    this.#options = { ...FEED, ...options }
    this.#clock = clock
  }

  get clients(): number {
    return this.#clients.size
  }

  /** A stream of what happens from now on or, where the memory reaches back so far, from `lastEventId` on. */
  async listen(listening: Listening): Promise<ReadableStream<Uint8Array>> {
    this.#checkRoom(listening.token)
    const client = new FeedClient(listening, this.#options.bufferBytes, gone => this.#left(gone))
    this.#clients.add(client)
    this.#quietSince = undefined
    try {
      // From here on nothing is missed: whatever is committed later is news.
      if (this.#since === undefined) await this.#look()
      if (this.#since === undefined) throw new RedriveError('DATABASE_UNREACHABLE', 'The database did not answer')
    } catch (error) {
      this.#left(client)
      throw error
    }
    this.#goOn()
    if (listening.isGone()) client.end()
    const missed = this.#missedBy(listening.lastEventId)
    client.push(this.#greeting(missed !== undefined))
    for (const frame of missed ?? []) client.push(frame)
    if (this.#statistics) client.push(this.#statistics.frame)
    return client.stream
  }

  /** Ends every stream; there will be no other. */
  close(): void {
    this.#closed = true
    this.#stop()
    for (const client of [...this.#clients]) client.end()
  }

  #checkRoom(token: string): void {
    const { mostClients, mostClientsPerToken } = this.#options
    if (this.#closed) throw new RedriveError('ALREADY_CLOSED', 'This server is closing')
    const ofToken = [...this.#clients].filter(client => client.token === token).length
    if (this.#clients.size < mostClients && ofToken < mostClientsPerToken) return
    const [most, whose] = ofToken < mostClientsPerToken ? [mostClients, 'in all'] : [mostClientsPerToken, 'one token']
    throw new RedriveError(
      'TOO_MANY_STREAMS',
      `There are ${most} streams of events already: as many as ${whose} may have`,
      {
        details: { limit: most, retryAfterSeconds: 10 },
      },
    )
  }

  #left(client: FeedClient): void {
    this.#clients.delete(client)
    if (this.#clients.size === 0) this.#quietSince = this.#clock.monotonic()
  }

  /** Undefined: it asked for nothing, or for more than is remembered. */
  #missedBy(lastEventId: string | null): Frame[] | undefined {
    const [, name, number] = /^(\w{1,32})-(\d{1,15})$/.exec(lastEventId ?? '') ?? []
    if (name !== this.#name || number === undefined) return undefined
    const behind = this.#told - Number(number)
    if (behind < 0 || behind > this.#memory.length) return undefined
    return behind === 0 ? [] : this.#memory.slice(-behind)
  }

  #greeting(resumed: boolean): Frame {
    // Where it goes on from: for one who resumes, that is told by the events that follow.
    const id = resumed ? undefined : `${this.#name}-${this.#told}`
    return frameOf('ready', { resumed }, { id, retryMs: 3_000 })
  }

  #goOn(): void {
    const { lookEveryMs, heartbeatMs } = this.#options
    this.#timer ??= this.#clock.timer(lookEveryMs, () => void this.#step(), { background: true })
    this.#beating ??= this.#clock.timer(heartbeatMs, () => this.#beat(), { background: true })
  }

  async #step(): Promise<void> {
    let waitMs = this.#options.lookEveryMs
    try {
      await this.#look()
    } catch (error) {
      if (isRedriveError(error, 'ALREADY_CLOSED')) return this.close()
      waitMs = Math.max(waitMs, PAUSE_MS)
    }
    this.#timer = undefined
    if (this.#closed) return
    if (this.#quietSince !== undefined && this.#clock.monotonic() > this.#quietSince + LINGER_MS) return this.#stop()
    this.#timer = this.#clock.timer(waitMs, () => void this.#step(), { background: true })
  }

  #stop(): void {
    this.#timer?.cancel()
    this.#beating?.cancel()
    this.#timer = undefined
    this.#beating = undefined
    // What happens from now on is not seen: nobody may resume from here.
    this.#name = newName()
    this.#told = 0
    this.#memory = []
    this.#since = undefined
    this.#statistics = undefined
    this.#known.clear()
  }

  /** Those who come at the same time share one look. */
  #look(): Promise<void> {
    this.#looking ??= this.#read().finally(() => {
      this.#looking = undefined
    })
    return this.#looking
  }

  async #read(): Promise<void> {
    const isFirst = this.#since === undefined
    const { now, events } = await this.#source.look(this.#since)
    this.#since = now
    const seenAt = this.#clock.monotonic()
    for (const { key, name, at, about } of events) {
      if (this.#known.has(key)) continue
      this.#known.set(key, seenAt)
      if (!isFirst) this.#tell(name, { at, ...about })
    }
    for (const [key, at] of this.#known) if (at < seenAt - KNOWN_MS) this.#known.delete(key)
    await this.#count(seenAt)
  }

  #tell(name: string, about: object): void {
    this.#told += 1
    const frame = frameOf(name, about, { id: `${this.#name}-${this.#told}` })
    this.#memory.push(frame)
    if (this.#memory.length > this.#options.memory) this.#memory.shift()
    for (const client of [...this.#clients]) client.push(frame)
  }

  /** Statistics have no id: only the last ones are of use. Told when they have changed. */
  async #count(now: number): Promise<void> {
    if (this.#clients.size === 0 || (this.#statistics && now < this.#statistics.at + this.#options.statisticsEveryMs))
      return
    const counts = await this.#source.statistics()
    const text = JSON.stringify(counts)
    const changed = text !== this.#statistics?.text
    const frame = changed || !this.#statistics ? frameOf('statistics', counts as object, {}) : this.#statistics.frame
    this.#statistics = { at: now, text, frame }
    if (changed) for (const client of [...this.#clients]) if (client.greeted) client.push(frame)
  }

  #beat(): void {
    this.#beating = this.#clock.timer(this.#options.heartbeatMs, () => this.#beat(), { background: true })
    for (const client of [...this.#clients]) client.beat()
  }
}

const newName = (): string => randomBytes(6).toString('hex')
