// Redis, or Valkey, as a carrier of live jobs: streams with one consumer group. Durable as far as that Redis is: see
// docs/operations/redis.md.
import { hostname } from 'node:os'
import { newId } from '../../domain/ids.js'
import {
  type Broker,
  type BrokerChoice,
  type BrokerConsumeOptions,
  type BrokerConsumer,
  type BrokerContext,
  brokerUnavailable,
  type Message,
} from '../broker.js'
import { isRefusal, RedisConnection } from './redis-connection.js'
import { RedisConsumer } from './redis-consumer.js'
import { wordsOf } from './redis-entry.js'
import { unfitness } from './redis-fitness.js'
import { type CheckedRedisOptions, checkRedisOptions, checkWhenDown, type RedisOptions } from './redis-options.js'
import { DEPTH, PUBLISH } from './redis-scripts.js'
import { streamKey, streamsOf } from './redis-streams.js'

export type { RedisOptions }

/** Redis carries the jobs of queues that say `transport: 'redis'`. */
export function redis(options: RedisOptions = {}): BrokerChoice {
  return {
    name: 'redis',
    whenDown: checkWhenDown(options.whenDown),
    open: context => new RedisBroker(checkRedisOptions(options, context.env), context),
  }
}

/** Messages of one step in Redis: all or none of them are taken, and nobody else waits for long. */
const CHUNK = { messages: 1_000, chars: 4_000_000 } as const

class RedisBroker implements Broker {
  readonly name = 'redis'
  readonly #options: CheckedRedisOptions
  readonly #context: BrokerContext
  readonly #commands: RedisConnection
  /** WAIT keeps its connection from everything else. */
  readonly #publishing: RedisConnection
  readonly #consumers = new Set<RedisConsumer>()

  constructor(options: CheckedRedisOptions, context: BrokerContext) {
    this.#options = options
    this.#context = context
    this.#commands = this.#connect('commands', () => this.#up())
    this.#publishing = options.replicas > 0 ? this.#connect('publishing') : this.#commands
  }

  get connected(): boolean {
    return this.#commands.up
  }

  async publish(messages: readonly Message[]): Promise<void> {
    let taken: 'none' | 'unknown' = 'none'
    for (const chunk of chunks(messages)) {
      await this.#publishChunk(chunk, taken)
      taken = 'unknown'
    }
    if (taken === 'unknown' && this.#options.replicas > 0) await this.#replicated()
  }

  consume(options: BrokerConsumeOptions): BrokerConsumer {
    const { prefix, claimAfterMs } = this.#options
    const { clock, random } = this.#context
    const consumer: RedisConsumer = new RedisConsumer(
      {
        commands: this.#commands,
        open: onUp => this.#connect('reading', onUp),
        consumer: `${hostname()}/${process.pid}/${newId(clock)}`,
        prefix,
        claimAfterMs,
        clock,
        random,
        onClosed: () => this.#consumers.delete(consumer),
      },
      options,
    )
    this.#consumers.add(consumer)
    return consumer
  }

  async depth(queue: string): Promise<number> {
    const keys = streamsOf(this.#options.prefix, queue).map(({ key }) => key)
    if (!(await this.#commands.within(this.#options.timeoutMs))) throw this.#away('none')
    return Number(await this.#commands.run(DEPTH, keys))
  }

  async close(): Promise<void> {
    await Promise.all([...this.#consumers].map(consumer => consumer.close()))
    this.#commands.close()
    this.#publishing.close()
  }

  async #publishChunk(messages: readonly Message[], before: 'none' | 'unknown'): Promise<void> {
    if (!(await this.#publishing.within(this.#options.timeoutMs))) throw this.#away(before)
    const keys: string[] = []
    const indexes = new Map<string, number>()
    const words: (string | number)[] = []
    for (const message of messages) {
      const key = streamKey(this.#options.prefix, message.queue, message.priority)
      const index = indexes.get(key) ?? keys.push(key)
      indexes.set(key, index)
      const own = wordsOf(message)
      words.push(index, own.length, ...own)
    }
    try {
      await this.#publishing.run(PUBLISH, keys, words)
    } catch (error) {
      // What refuses one stream may have come after another took its entries.
      const taken = isRefusal(error) && keys.length === 1 ? before : 'unknown'
      throw brokerUnavailable('redis', `did not take it: ${(error as Error).message}`, taken, error)
    }
  }

  async #replicated(): Promise<void> {
    const { replicas, timeoutMs } = this.#options
    const have = await this.#publishing.call('WAIT', [replicas, timeoutMs], 2 * timeoutMs).catch(error => {
      throw brokerUnavailable('redis', `did not answer for its replicas: ${error.message}`, 'unknown', error)
    })
    if (Number(have) >= replicas) return
    throw brokerUnavailable('redis', `has it, but only ${have} of ${replicas} replicas confirmed it in time`, 'unknown')
  }

  #away(taken: 'none' | 'unknown') {
    const { trouble } = this.#publishing
    const why = trouble ? ` (${trouble.message})` : ''
    return brokerUnavailable('redis', `is away: no connection within ${this.#options.timeoutMs} ms${why}`, taken)
  }

  #connect(what: string, onUp?: () => void): RedisConnection {
    const { url, tls, timeoutMs } = this.#options
    const { clock, random, onError } = this.#context
    return new RedisConnection({
      url,
      tls,
      timeoutMs,
      clock,
      random,
      onError,
      name: `redrive:${what}`,
      ...(onUp && { onUp }),
    })
  }

  #up(): void {
    for (const consumer of this.#consumers) consumer.reconnected()
    this.#commands.call('INFO', []).then(
      info => {
        const unfit = unfitness(String(info))
        if (unfit) this.#context.onError(unfit)
      },
      () => {}, // not allowed to ask, or gone again: nothing is known to be wrong
    )
  }
}

function* chunks(messages: readonly Message[]): Generator<Message[]> {
  let chunk: Message[] = []
  let chars = 0
  for (const message of messages) {
    if (chunk.length === CHUNK.messages || (chunk.length > 0 && chars + message.body.length > CHUNK.chars)) {
      yield chunk
      chunk = []
      chars = 0
    }
    chunk.push(message)
    chars += message.body.length
  }
  if (chunk.length > 0) yield chunk
}
