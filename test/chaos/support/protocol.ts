// What a chaos process is given when it starts, what it can be told on stdin, and what it tells on stdout: one JSON line
// for each thing that happened, written before anything else can happen. What it told survives its death.
import type { Decision, OutcomeType } from '../../../src/index.js'
import type { RedisOptions } from '../../../src/redis.js'
import type { RabbitmqOptions } from '../../../src/transport/transports/rabbitmq.js'

export interface ChildConfig {
  readonly name: string
  /** A server's URL, or the folder of an embedded database. */
  readonly database?: string
  readonly folder?: string
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs?: number
  /** How long running jobs may go on after SIGTERM. */
  readonly graceMs?: number
  /** Off: opens everything, but works only when told to. */
  readonly working?: boolean
  /** Enqueues all the time, and tells what was acknowledged. */
  readonly enqueuing?: boolean
  /** Redis carries the jobs, or RabbitMQ does. */
  readonly redis?: RedisOptions
  readonly rabbitmq?: RabbitmqOptions
}

/** `open`: lets gates through, those of the ids or all. */
export type Command = { readonly do: 'work' } | { readonly do: 'open'; readonly ids: readonly string[] | 'all' }

export type News =
  | { readonly event: 'opened' }
  | { readonly event: 'ready' }
  | { readonly event: 'acknowledged'; readonly ids: readonly string[] }
  // The handler's own story.
  | { readonly event: 'started'; readonly id: string; readonly job: string; readonly attempt: number }
  | { readonly event: 'finished'; readonly id: string; readonly attempt: number }
  | { readonly event: 'threw'; readonly id: string; readonly attempt: number; readonly code: string }
  // What the runtime announced.
  | { readonly event: 'settled'; readonly id: string; readonly attempt: number; readonly as: Decision['type'] }
  | { readonly event: 'refused'; readonly id: string; readonly outcome: OutcomeType }
  | { readonly event: 'rescued'; readonly id: string; readonly worker: string; readonly as: Decision['type'] }
  | { readonly event: 'lapsed'; readonly reason: string; readonly ids: readonly string[] }
  | { readonly event: 'error'; readonly where: string; readonly message: string }
  | { readonly event: 'terminating' }
  | { readonly event: 'stopped' }

/** News with whose they are and when they happened. */
export type Told = News & { readonly pid: number; readonly at: number }

export type ToldOf<Event extends News['event']> = Extract<Told, { event: Event }>
