// The port of a broker that carries live jobs beside the ledger: RabbitMQ, Redis. It moves messages and knows nothing
// of jobs: what a message says is read in envelope.ts, and what becomes of a job is decided elsewhere. A success is
// acknowledged; whatever is not a success is written in the ledger first and acknowledged then.
import type { Clock, Random } from '../domain/clock.js'
import { RedriveError } from '../domain/errors.js'

/** One message on its way, in the broker's own simplest terms: anyone with a client can make one. */
export interface Message {
  readonly queue: string
  /** 0–10, higher first. */
  readonly priority: number
  /** Short facts about the job; names are lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** The job's payload, as JSON text. */
  readonly body: string
}

/** A message in the hands of this process, until it is acknowledged or given back. */
export interface Delivery {
  readonly queue: string
  readonly priority: number
  readonly headers: Readonly<Record<string, string>>
  /** As it came: perhaps no JSON at all, perhaps not even text (then decoded with replacement characters). */
  readonly body: string
  /** Somebody may have had it before: a worker died with it, or a connection broke. */
  readonly redelivered: boolean
}

export interface BrokerConsumeOptions {
  readonly queues: readonly string[]
  /** So many deliveries may be in the hands of this process at once, over all its queues. */
  readonly prefetch: number
  /** There may be something to take. */
  readonly onWake: () => void
  /** The right to these is gone (connection lost, claimed by another): they will be delivered again, to anyone. */
  readonly onLost: (deliveries: readonly Delivery[]) => void
  /** Something went wrong that will be tried again. */
  readonly onError: (error: unknown) => void
}

export interface BrokerConsumer {
  /** Up to `limit` deliveries of a queue that have arrived, first in line first. Never waits. */
  take(queue: string, limit: number): Delivery[]
  /** How many of a queue have arrived and were not taken. */
  arrived(queue: string): number
  /** Settled: the broker forgets them. Resolves to those whose acknowledgement did not count, as `onLost` would say. */
  acknowledge(deliveries: readonly Delivery[]): Promise<Delivery[]>
  /** Back in line at once, for anyone. */
  giveBack(deliveries: readonly Delivery[]): Promise<void>
  /**
   * Stops or goes on taking from a queue. Whoever pauses takes what has arrived first; what comes in between may go back
   * or wait here to be taken.
   */
  setPaused(queue: string, paused: boolean): void
  /** From now on so many deliveries may be in the hands of this process at once. */
  setPrefetch?(prefetch: number): void
  /** Everything that was not settled goes back. */
  close(): Promise<void>
}

export type BrokerName = 'rabbitmq' | 'redis'

export interface Broker {
  readonly name: BrokerName
  /** False: away at the moment; it connects again by itself. */
  readonly connected: boolean
  /**
   * Durable with the broker when it resolves. Rejects with BROKER_UNAVAILABLE (see `brokerUnavailable`) within a bounded
   * time. After an error any of them may have been taken all the same, unless it says that none was.
   */
  publish(messages: readonly Message[]): Promise<void>
  consume(options: BrokerConsumeOptions): BrokerConsumer
  /** Messages of a queue in nobody's hands. */
  depth(queue: string): Promise<number>
  /** A queue beside the others that shows dead letters to whoever looks at the broker, where it can have one. */
  readonly mirror?: MirrorQueue
  close(): Promise<void>
}

export interface MirrorQueue {
  /** What it is called in the broker. */
  readonly name: string
  /** Durable when it resolves. */
  add(messages: readonly Omit<Message, 'queue' | 'priority'>[]): Promise<void>
  /** A round through the queue begins. Returns how many messages there are to look at. */
  beginRound(): Promise<number>
  /**
   * Looks at the next messages of the round, at most `limit`, and takes out those that are gone by their redrive-id, and
   * second copies of what the round has seen. Returns how many it looked at, and the ids it took out.
   */
  sweep(
    limit: number,
    gone: (ids: readonly string[]) => Promise<ReadonlySet<string>>,
  ): Promise<{ readonly looked: number; readonly removed: readonly string[] }>
}

/** What the factories give to `openRedrive`: how to open a broker. Nothing is connected before. */
export interface BrokerChoice {
  readonly name: BrokerName
  /** What enqueue does while the broker is away: fail, or put the job into the ledger. */
  readonly whenDown: 'fail' | 'park'
  /** Checks what it needs of the environment and connects, without waiting for the connection. */
  open(context: BrokerContext): Broker
}

export interface BrokerContext {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Clock
  readonly random: Random
  /** Something in the background failed and will be tried again. */
  readonly onError: (error: unknown) => void
}

/** `taken`: whether the broker may have some of the messages all the same. */
export const brokerUnavailable = (broker: BrokerName, why: string, taken: 'none' | 'unknown', cause?: unknown) =>
  new RedriveError('BROKER_UNAVAILABLE', `${NAMES[broker]} ${why}`, {
    details: { broker, taken },
    ...(cause !== undefined && { cause }),
  })

const NAMES: Readonly<Record<BrokerName, string>> = { rabbitmq: 'RabbitMQ', redis: 'Redis' }
