// The port of a broker that carries live jobs beside the ledger: RabbitMQ, Redis. It moves messages and knows nothing
// of jobs: what a message says is read in envelope.ts, and what becomes of a job is decided elsewhere. A success is
// acknowledged; whatever is not a success is written in the ledger first and acknowledged then.

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
  /** Stops or goes on taking from a queue; what has arrived and was not taken goes back. */
  setPaused(queue: string, paused: boolean): void
  /** Everything that was not settled goes back. */
  close(): Promise<void>
}

export interface Broker {
  readonly name: 'rabbitmq' | 'redis'
  /** False: away at the moment; it connects again by itself. */
  readonly connected: boolean
  /** Durable with the broker when it resolves. After an error any of them may have been taken all the same. */
  publish(messages: readonly Message[]): Promise<void>
  consume(options: BrokerConsumeOptions): BrokerConsumer
  /** Messages of a queue in nobody's hands. */
  depth(queue: string): Promise<number>
  close(): Promise<void>
}
