// Reads entries for one consumer, on a connection of its own: what is in line now, by priority, then waits for what comes.
// The wait is short enough that what others gave back is found soon, and long enough to cost nothing.
//
// An answer that was lost with its connection has left entries in our name: after every trouble the reader looks for them.
import { type Clock, type Random, sleep } from '../../domain/clock.js'
import { isReply, pauseMs, type RedisConnection } from './redis-connection.js'
import { RedisDelivery } from './redis-entry.js'
import type { Holdings } from './redis-holdings.js'
import { CLAIM, FOUND, HELD, KEEP, READ, SWEEP, TAKE } from './redis-scripts.js'
import { nameOf, placed, selection } from './redis-selection.js'
import { GROUP, inLine, type Stream } from './redis-streams.js'

export interface ReaderOptions {
  readonly consumer: string
  readonly lines: ReadonlyMap<string, readonly Stream[]>
  readonly holdings: Holdings
  readonly claimAfterMs: number
  /** How long what was just read is surely ours. */
  readonly safeMs: number
  readonly clock: Clock
  readonly random: Random
  /** How many more may be in hand. */
  readonly room: () => number
  readonly isPaused: (queue: string) => boolean
  readonly onArrived: (deliveries: readonly RedisDelivery[]) => void
  readonly onError: (error: unknown) => void
}

const LONGEST_BLOCK_MS = 1_000
const IDLE_MS = 1_000
/** One in so many is read out of turn, from the streams one after the other: no priority is passed over for ever. */
const OUT_OF_TURN_EVERY = 20
/** A consumer that was silent for so many times `claimAfterMs` and holds nothing is gone. */
const GONE_AFTER = 10

type Taken = [stream: number, id: string, deliveries: number, fields: string[], outOfTurn: number]
type Claimed = [stream: number, id: string, owner: string, deliveries: number, fields: string[]]
type HeldEntry = [stream: number, id: string, deliveries: number]
type ReadEntry = [stream: number, id: string, fields: string[]]
type Listened = [key: string, entries: [id: string, fields: string[]][]][] | null

export class RedisReader {
  readonly #connection: RedisConnection
  readonly #options: ReaderOptions
  readonly #blockMs: number
  readonly #streams: readonly Stream[]
  readonly #stopping = new AbortController()
  readonly #running: Promise<void>
  #rest: AbortController | undefined
  #asking: Promise<void> | undefined
  #founded = false
  #unsure = false
  #nextClaimAt: number
  #claims = 0
  #turn = 0
  #sinceOutOfTurn = 0
  #outOfTurn = 0
  #client: number | undefined

  constructor(connection: RedisConnection, options: ReaderOptions) {
    this.#connection = connection
    this.#options = options
    this.#blockMs = Math.min(LONGEST_BLOCK_MS, Math.ceil(options.claimAfterMs / 4))
    this.#streams = inLine([...options.lines.values()], 0)
    this.#nextClaimAt = this.#claimTime()
    this.#running = this.#run()
  }

  /** The connection is new: an answer may have been lost, and others may not have come back yet to keep what is theirs. */
  reconnected(): void {
    this.#client = undefined
    this.#unsure = true
    this.#nextClaimAt = this.#claimTime()
    this.nudge()
  }

  /** There may be room, or a queue that goes on. */
  nudge(): void {
    this.#rest?.abort()
  }

  /** The number under which Redis knows the connection that waits, to end its wait. */
  get client(): number | undefined {
    return this.#client
  }

  /** Resolves when what was asked for has been answered. */
  async answered(): Promise<void> {
    await this.#asking?.catch(() => {})
  }

  /** Resolves when nothing more will be read. */
  stop(): Promise<void> {
    this.#stopping.abort()
    this.nudge()
    return this.#running
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping
    for (let failures = 0; !signal.aborted; ) {
      try {
        this.#asking = this.#step()
        await this.#asking
        failures = 0
      } catch (error) {
        if (signal.aborted) return
        this.#unsure = true
        const flushed = isReply(error, 'NOGROUP') || isReply(error, 'UNBLOCKED')
        if (flushed) this.#founded = false
        // A broken connection is told by the connection.
        if (this.#connection.up && !(flushed && failures === 0)) this.#options.onError(error)
        failures += 1
        if (failures > 1 || !flushed) await this.#idle(pauseMs(failures, this.#options.random))
      }
    }
  }

  async #step(): Promise<void> {
    if (!(await this.#connection.within(IDLE_MS))) return
    if (!this.#founded) await this.#found()
    if (this.#unsure) await this.#recollect()
    if (this.#client === undefined) this.#client = Number(await this.#connection.call('CLIENT', ['ID']))
    const { room, lines, isPaused } = this.#options
    const open = [...lines].filter(([queue]) => !isPaused(queue)).map(([, streams]) => streams)
    if (open.length === 0 || room() <= 0) return this.#idle(IDLE_MS)
    this.#turn += 1
    const streams = inLine(open, this.#turn)
    if (this.#options.clock.monotonic() >= this.#nextClaimAt) await this.#claim(streams)
    if (room() <= 0 || (await this.#take(streams)) > 0 || this.#stopping.signal.aborted) return
    await this.#listen(streams)
  }

  async #found(): Promise<void> {
    await this.#connection.run(FOUND, keysOf(this.#streams))
    this.#founded = true
  }

  async #take(streams: readonly Stream[]): Promise<number> {
    const { consumer, room, holdings } = this.#options
    const early = this.#sinceOutOfTurn >= OUT_OF_TURN_EVERY ? 1 : 0
    this.#outOfTurn += early
    const safeUntil = this.#safeUntil()
    const words = [consumer, room(), early, this.#outOfTurn % streams.length]
    const taken = (await this.#connection.run(TAKE, keysOf(streams), words)) as Taken[]
    this.#sinceOutOfTurn = early > 0 ? 0 : this.#sinceOutOfTurn + taken.length
    this.#arrive(
      taken.map(([index, id, deliveries, fields, outOfTurn]) => {
        const stream = streams[index - 1] as Stream
        const redelivered = deliveries > 0 || holdings.wasOurs(nameOf(stream.key, id))
        return new RedisDelivery(stream, id, fields, { redelivered, outOfTurn: outOfTurn === 1, safeUntil })
      }),
    )
    return taken.length
  }

  async #listen(streams: readonly Stream[]): Promise<void> {
    const keys = keysOf(streams)
    const words = ['GROUP', GROUP, this.#options.consumer, 'COUNT', 1, 'BLOCK', this.#blockMs]
    const safeUntil = this.#safeUntil()
    const limitMs = this.#blockMs + this.#connection.timeoutMs
    const all = [...words, 'STREAMS', ...keys, ...keys.map(() => '>')]
    const read = (await this.#connection.call('XREADGROUP', all, limitMs)) as Listened
    const byKey = new Map(streams.map(stream => [stream.key, stream]))
    this.#arrive(
      (read ?? []).flatMap(([key, entries]) =>
        entries.map(([id, fields]) => {
          const redelivered = this.#options.holdings.wasOurs(nameOf(key, id))
          return new RedisDelivery(byKey.get(key) as Stream, id, fields, { redelivered, safeUntil })
        }),
      ),
    )
  }

  /** What dead consumers hold, and, now and then, their names. */
  async #claim(streams: readonly Stream[]): Promise<void> {
    const { consumer, room, claimAfterMs, holdings } = this.#options
    this.#nextClaimAt = this.#claimTime()
    this.#claims += 1
    const safeUntil = this.#safeUntil()
    const claimed = (await this.#connection.run(CLAIM, keysOf(streams), [consumer, room(), claimAfterMs])) as Claimed[]
    this.#arrive(
      claimed.flatMap(([index, id, owner, deliveries, fields]) => {
        const stream = streams[index - 1] as Stream
        const name = nameOf(stream.key, id)
        if (holdings.knows(name)) return []
        const unseen = owner === consumer && deliveries <= 1 && !holdings.wasOurs(name)
        return [new RedisDelivery(stream, id, fields, { redelivered: !unseen, safeUntil })]
      }),
    )
    if (this.#claims % GONE_AFTER !== 0) return
    await this.#connection.run(SWEEP, keysOf(streams), [consumer, claimAfterMs * GONE_AFTER])
  }

  /** What is in our name without our knowing. */
  async #recollect(): Promise<void> {
    const { consumer, holdings } = this.#options
    const held = (await this.#connection.run(HELD, keysOf(this.#streams), [consumer])) as HeldEntry[]
    const byKey = new Map(this.#streams.map(stream => [stream.key, stream]))
    const deliveriesOf = new Map<string, number>()
    const unknown = held.flatMap(([index, id, deliveries]) => {
      const { key } = this.#streams[index - 1] as Stream
      if (holdings.knows(nameOf(key, id))) return []
      deliveriesOf.set(nameOf(key, id), deliveries)
      return [placed(key, id)]
    })
    if (unknown.length > 0) {
      const { keys, words } = selection(unknown)
      const safeUntil = this.#safeUntil()
      const others = (await this.#connection.run(KEEP, keys, [consumer, ...words])) as [number, string][]
      const read = (await this.#connection.run(READ, keys, [consumer, ...words])) as ReadEntry[]
      // What was given back in the meantime is not ours.
      const notOurs = new Set(others.map(([index, id]) => nameOf(keys[index - 1] as string, id)))
      this.#arrive(
        read.flatMap(([index, id, fields]) => {
          const key = keys[index - 1] as string
          const name = nameOf(key, id)
          if (notOurs.has(name)) return []
          const seen = holdings.wasOurs(name) || deliveriesOf.get(name) !== 1
          return [new RedisDelivery(byKey.get(key) as Stream, id, fields, { redelivered: seen, safeUntil })]
        }),
      )
    }
    this.#unsure = false
  }

  #arrive(deliveries: readonly RedisDelivery[]): void {
    if (deliveries.length > 0) this.#options.onArrived(deliveries)
  }

  #safeUntil(): number {
    return this.#options.clock.monotonic() + this.#options.safeMs
  }

  #claimTime(): number {
    const { clock, random, claimAfterMs } = this.#options
    return clock.monotonic() + claimAfterMs * (0.25 + random() / 4)
  }

  async #idle(ms: number): Promise<void> {
    if (this.#stopping.signal.aborted) return
    this.#rest = new AbortController()
    await sleep(this.#options.clock, ms, this.#rest.signal)
    this.#rest = undefined
  }
}

const keysOf = (streams: readonly Stream[]): string[] => streams.map(({ key }) => key)
