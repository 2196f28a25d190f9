// Taking from Redis. An entry in our name stays ours when a connection breaks: only when we were silent for `claimAfterMs`
// may another consumer take it over. So what is in hand is kept by a sign of life, a long handler too; and when no sign got
// through for most of that time, it is given up as lost, before anyone else can have it (invariant 3).
import { type Clock, type Random, sleep, type Timer } from '../../domain/clock.js'
import type { BrokerConsumeOptions, BrokerConsumer, Delivery } from '../broker.js'
import { isReply, pauseMs, type RedisConnection } from './redis-connection.js'
import type { RedisDelivery } from './redis-entry.js'
import { Holdings } from './redis-holdings.js'
import { RedisReader } from './redis-reader.js'
import { ACKNOWLEDGE, KEEP, LEAVE, PARK_TOUCHED, PARK_UNTOUCHED, type Script } from './redis-scripts.js'
import { nameOf, selection } from './redis-selection.js'
import { type Stream, streamsOf } from './redis-streams.js'

export interface ConsumerParts {
  /** For all but reading. */
  readonly commands: RedisConnection
  /** Opens the connection that reads. */
  readonly open: (onUp: () => void) => RedisConnection
  readonly consumer: string
  readonly prefix: string
  readonly claimAfterMs: number
  readonly clock: Clock
  readonly random: Random
  readonly onClosed: () => void
}

// Shares of the time after which others may take over. A sign of life is given every quarter; after seven tenths without
// one that counted, the last is tried; and when that has not been answered in an eighth more, there is time left to abort.
const SAFE_SHARE = 0.7
const SIGN_SHARE = 1 / 4
const ANSWER_SHARE = 1 / 8
const CHUNK = 1_000
const CLOSE_LIMIT_MS = 2_000

export class RedisConsumer implements BrokerConsumer {
  readonly #parts: ConsumerParts
  readonly #options: BrokerConsumeOptions
  readonly #lines: ReadonlyMap<string, readonly Stream[]>
  readonly #holdings = new Holdings()
  readonly #paused = new Set<string>()
  readonly #reading: RedisConnection
  readonly #reader: RedisReader
  #prefetch: number
  #sign: Timer | undefined
  #keeping: Promise<void> | undefined
  #closing: Promise<void> | undefined

  constructor(parts: ConsumerParts, options: BrokerConsumeOptions) {
    this.#parts = parts
    this.#options = options
    this.#prefetch = options.prefetch
    this.#lines = new Map(options.queues.map(queue => [queue, streamsOf(parts.prefix, queue)]))
    this.#reading = parts.open(() => this.#reader?.reconnected())
    this.#reader = new RedisReader(this.#reading, {
      ...parts,
      lines: this.#lines,
      holdings: this.#holdings,
      safeMs: parts.claimAfterMs * SAFE_SHARE,
      room: () => this.#prefetch - this.#holdings.size,
      isPaused: queue => this.#paused.has(queue),
      onArrived: deliveries => this.#arrive(deliveries),
      onError: options.onError,
    })
    this.#signLater()
  }

  take(queue: string, limit: number): Delivery[] {
    return this.#holdings.take(queue, limit)
  }

  arrived(queue: string): number {
    return this.#holdings.arrived(queue)
  }

  /** Without any it resolves when what was on its way here has arrived. */
  async acknowledge(deliveries: readonly Delivery[]): Promise<Delivery[]> {
    if (deliveries.length === 0) {
      this.#endWait()
      await this.#reader.answered()
    }
    const { mine, lost } = this.#letGo(deliveries as readonly RedisDelivery[])
    const others = await this.#settle(ACKNOWLEDGE, mine)
    this.#holdings.settled(mine)
    return [...lost, ...others]
  }

  async giveBack(deliveries: readonly Delivery[]): Promise<void> {
    await this.#park(this.#letGo(deliveries as readonly RedisDelivery[]).mine)
  }

  setPaused(queue: string, paused: boolean): void {
    if (!this.#lines.has(queue) || this.#paused.has(queue) === paused) return
    if (paused) this.#paused.add(queue)
    else this.#paused.delete(queue)
    this.#reader.nudge()
    this.#endWait()
    if (paused) void this.giveBack(this.#holdings.withdraw(queue))
  }

  setPrefetch(prefetch: number): void {
    this.#prefetch = prefetch
    this.#reader.nudge()
  }

  /** The connection for commands is new: say that we are alive, before others think we are not. */
  reconnected(): void {
    void this.#keep()
  }

  close(): Promise<void> {
    this.#closing ??= this.#close()
    return this.#closing
  }

  async #close(): Promise<void> {
    const { commands, clock, consumer, onClosed } = this.#parts
    this.#sign?.cancel()
    const done = new AbortController()
    const leave = async () => {
      const stopped = this.#reader.stop()
      this.#endWait()
      await stopped
      await this.#park(this.#letGo(this.#holdings.all()).mine)
      await commands.run(LEAVE, this.#keys(), [consumer])
    }
    const left = leave()
      .catch(error => commands.up && this.#options.onError(error))
      .finally(() => done.abort())
    // With Redis away nothing can be given back: it will be claimed when it has been idle for long enough.
    await Promise.race([left, sleep(clock, CLOSE_LIMIT_MS, done.signal)])
    this.#reading.close()
    onClosed()
  }

  #arrive(deliveries: readonly RedisDelivery[]): void {
    const excess: RedisDelivery[] = []
    for (const delivery of deliveries) {
      const welcome = this.#holdings.size < this.#prefetch && !this.#paused.has(delivery.queue)
      this.#holdings.add(delivery, welcome)
      if (!welcome) excess.push(delivery)
    }
    // A wait that several streams end at once brings one entry of each.
    if (excess.length > 0) void this.giveBack(excess)
    if (excess.length < deliveries.length) this.#options.onWake()
  }

  /** Those that are in hand, from now on on their way out; and those that are not ours any more. */
  #letGo(deliveries: readonly RedisDelivery[]): { mine: RedisDelivery[]; lost: RedisDelivery[] } {
    const mine = deliveries.filter(delivery => this.#holdings.has(delivery) && !delivery.settling)
    const lost = deliveries.filter(delivery => !this.#holdings.has(delivery))
    for (const delivery of mine) delivery.settling = true
    return { mine, lost }
  }

  async #park(deliveries: readonly RedisDelivery[]): Promise<void> {
    const touched = deliveries.filter(({ taken, redelivered }) => taken || redelivered)
    const untouched = deliveries.filter(({ taken, redelivered }) => !taken && !redelivered)
    await Promise.all([this.#settle(PARK_TOUCHED, touched), this.#settle(PARK_UNTOUCHED, untouched)])
  }

  /**
   * Says it until Redis has heard it, or until the right to say it is gone. Whoever says it again after a lost answer is
   * told the same: what is not in the stream any more was settled. Returns those that are another's now.
   */
  async #settle(script: Script, settled: readonly RedisDelivery[]): Promise<RedisDelivery[]> {
    const { commands, clock, random } = this.#parts
    for (let tries = 1; ; tries += 1) {
      // What was given back, and has come to us again before we heard that it was, stays.
      const deliveries = script === ACKNOWLEDGE ? settled : settled.filter(delivery => this.#holdings.has(delivery))
      if (deliveries.length === 0) return []
      try {
        const others = await this.#about(script, deliveries)
        this.#holdings.drop(deliveries)
        this.#reader.nudge()
        return others
      } catch (error) {
        // Redis was emptied: nobody has them.
        const flushed = isReply(error, 'NOGROUP')
        if (commands.up && !flushed) this.#options.onError(error)
        const late = deliveries.every(({ safeUntil }) => safeUntil < clock.monotonic())
        if (flushed || late || commands.closed) {
          if (flushed) this.#holdings.drop(deliveries)
          else this.#holdings.abandon(deliveries)
          this.#reader.nudge()
          return flushed ? [] : [...deliveries]
        }
        await sleep(clock, pauseMs(tries, random))
        await commands.within(this.#parts.claimAfterMs * SIGN_SHARE)
      }
    }
  }

  /** Runs a script on entries; returns those that are not ours. */
  async #about(script: Script, deliveries: readonly RedisDelivery[], limitMs?: number): Promise<RedisDelivery[]> {
    const others: RedisDelivery[] = []
    for (let from = 0; from < deliveries.length; from += CHUNK) {
      const chunk = deliveries.slice(from, from + CHUNK)
      const { keys, words } = selection(chunk)
      const answer = await this.#parts.commands.run(script, keys, [this.#parts.consumer, ...words], limitMs)
      const named = new Set((answer as [number, string][]).map(([index, id]) => nameOf(keys[index - 1] as string, id)))
      if (named.size > 0) others.push(...chunk.filter(({ name }) => named.has(name)))
    }
    return others
  }

  #signLater(): void {
    const { clock, claimAfterMs } = this.#parts
    this.#sign?.cancel()
    if (this.#closing !== undefined) return
    const now = clock.monotonic()
    const kept = this.#holdings.all().filter(({ settling }) => !settling)
    const safe = kept.reduce((least, { safeUntil }) => Math.min(least, safeUntil), Number.POSITIVE_INFINITY)
    const delayMs = Math.min(claimAfterMs * SIGN_SHARE, Math.max(0, safe - now))
    this.#sign = clock.timer(Math.ceil(delayMs), () => void this.#keep(), { background: true })
  }

  #keep(): Promise<void> {
    this.#keeping ??= this.#keepAll().finally(() => {
      this.#keeping = undefined
      this.#signLater()
    })
    return this.#keeping
  }

  async #keepAll(): Promise<void> {
    const { clock, claimAfterMs } = this.#parts
    const held = this.#holdings.all()
    if (held.length === 0) return
    const saidAt = clock.monotonic()
    let others: readonly RedisDelivery[] = []
    try {
      const limitMs = Math.min(this.#parts.commands.timeoutMs, Math.ceil(claimAfterMs * ANSWER_SHARE))
      others = await this.#about(KEEP, held, limitMs)
      for (const delivery of held) delivery.safeUntil = saidAt + claimAfterMs * SAFE_SHARE
    } catch (error) {
      if (this.#parts.commands.up && !isReply(error, 'NOGROUP')) this.#options.onError(error)
    }
    const now = clock.monotonic()
    const gone = new Set(others)
    const lost = held.filter(delivery => !delivery.settling && (gone.has(delivery) || delivery.safeUntil < now))
    if (lost.length === 0) return
    this.#holdings.abandon(lost)
    this.#reader.nudge()
    const taken = lost.filter(delivery => delivery.taken)
    if (taken.length > 0) this.#options.onLost(taken)
  }

  /** The reader waits in Redis for what comes; let it look round. */
  #endWait(): void {
    const { client } = this.#reader
    if (client === undefined || !this.#parts.commands.up) return
    this.#parts.commands.call('CLIENT', ['UNBLOCK', client]).catch(() => {})
  }

  #keys(): string[] {
    return [...this.#lines.values()].flatMap(streams => streams.map(({ key }) => key))
  }
}
