// A plain Redis list from which nothing is lost: whoever takes an entry keeps it in Redis, in its own name, until it says
// that it is done. An entry gets a ticket when it is taken, a UUID that stays with it: whoever takes over the entries of
// one that died can look whether the job of that id is there already.
//
//     list ──BLMOVE──▶ <member>:arrived ──▶ <member>:tickets { ticket: entry } ──done──▶ gone
//
// What is in `arrived` was never looked at and goes back to the front of the list when its member dies. What has a ticket
// may have been enqueued: it goes over to another member, ticket and all.
import { hostname } from 'node:os'
import type { Clock, Random } from '../../domain/clock.js'
import { newId } from '../../domain/ids.js'
import type { Arrival, InboxSource } from '../inbox-source.js'
import { RedisConnection } from './redis-connection.js'
import { ADOPT, DONE, LEAVE_LIST, TAKE_FROM_LIST } from './redis-list-scripts.js'
import type { CheckedRedisOptions } from './redis-options.js'

export interface RedisListOptions extends Pick<CheckedRedisOptions, 'url' | 'tls' | 'prefix' | 'timeoutMs'> {
  readonly list: string
  /** A member that gave no sign of life for so long is dead. */
  readonly claimAfterMs: number
  /** Longer entries are cut. */
  readonly maxBytes: number
  readonly clock: Clock
  readonly random: Random
  readonly onError: (error: unknown) => void
}

const LONGEST_BLOCK_MS = 1_000

type Taken = [ticket: string, text: string, bytes: number]

export class RedisList implements InboxSource {
  readonly #options: RedisListOptions
  readonly #commands: RedisConnection
  /** For the call that waits. */
  readonly #waiting: RedisConnection
  readonly #member: string
  readonly #base: string
  readonly #blockMs: number
  #adoptAt = 0
  #interrupted = false

  constructor(options: RedisListOptions) {
    this.#options = options
    this.#member = `${hostname()}/${process.pid}/${newId(options.clock)}`
    this.#base = `${options.prefix}inbox:${options.list}`
    this.#blockMs = Math.min(LONGEST_BLOCK_MS, Math.ceil(options.claimAfterMs / 4))
    const connect = (what: string) => new RedisConnection({ ...options, name: `redrive:inbox-${what}` })
    this.#commands = connect('commands')
    this.#waiting = connect('waiting')
  }

  async take(limit: number): Promise<Arrival[]> {
    const { timeoutMs, list } = this.#options
    if (this.#interrupted || !(await this.#commands.within(timeoutMs))) return []
    const adopted = await this.#adopt()
    if (adopted.length > 0) return adopted
    const taken = await this.#takeNow(limit)
    if (taken.length > 0) return taken
    if (!(await this.#waiting.within(this.#blockMs))) return []
    const words = [list, this.#key('arrived'), 'LEFT', 'RIGHT', this.#blockMs / 1_000]
    const arrived = await this.#waiting.call('BLMOVE', words, this.#blockMs + timeoutMs).catch(error => {
      if (!this.#interrupted) throw error
      return null
    })
    return arrived === null ? [] : this.#takeNow(limit)
  }

  async done(tickets: readonly string[]): Promise<void> {
    if (tickets.length > 0) await this.#commands.run(DONE, [this.#key('tickets')], tickets)
  }

  interrupt(): void {
    this.#interrupted = true
    this.#waiting.close()
  }

  async close(): Promise<void> {
    try {
      const keys = [this.#options.list, this.#key('arrived'), this.#key('tickets'), this.#members]
      if (this.#commands.up) await this.#commands.run(LEAVE_LIST, keys, [this.#member])
    } finally {
      this.#waiting.close()
      this.#commands.close()
    }
  }

  async #takeNow(limit: number): Promise<Arrival[]> {
    const { list, maxBytes, clock } = this.#options
    const keys = [list, this.#key('arrived'), this.#key('tickets'), this.#members]
    const tickets = Array.from({ length: limit }, () => newId(clock))
    const taken = await this.#commands.run(TAKE_FROM_LIST, keys, [this.#member, maxBytes, ...tickets])
    return (taken as Taken[]).map(entry => arrivalOf(entry, false))
  }

  /** What dead members left; looked for at the start, and now and then. */
  async #adopt(): Promise<Arrival[]> {
    const { list, claimAfterMs, maxBytes, clock, random } = this.#options
    if (clock.monotonic() < this.#adoptAt) return []
    const keys = [list, this.#key('tickets'), this.#members]
    const words = [this.#member, maxBytes, claimAfterMs, `${this.#base}:`]
    const adopted = await this.#commands.run(ADOPT, keys, words)
    this.#adoptAt = clock.monotonic() + claimAfterMs * (0.25 + random() / 4)
    return (adopted as Taken[]).map(entry => arrivalOf(entry, true))
  }

  get #members(): string {
    return `${this.#base}:members`
  }

  #key(what: 'arrived' | 'tickets'): string {
    return `${this.#base}:${this.#member}:${what}`
  }
}

const arrivalOf = ([ticket, text, bytes]: Taken, again: boolean): Arrival => ({ ticket, text, bytes, again })
