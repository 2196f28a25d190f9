// The jobs of the chaos tests. Their handlers are given by whoever runs them; who only enqueues needs none.
import { defineJob, type Handler, type RedriveOptions } from '../../../src/index.js'
import { type RedisOptions, redis } from '../../../src/redis.js'
import { type RabbitmqOptions, rabbitmq } from '../../../src/transport/transports/rabbitmq.js'

export interface Payloads {
  /** Takes a while and ends as told: `flaky` fails on its first attempt. */
  work: { readonly ms: number; readonly end?: 'complete' | 'flaky' | 'die' | 'cancel' }
  /** Runs until it is told to go through. */
  gate: Record<string, never>
  /** Keeps the event loop to itself, on the first attempt, until the file exists. */
  block: { readonly until: string }
  /** Ends its process the hard way: on the first attempt when it is let through, then at once. */
  poison: Record<string, never>
}

type Handlers = { readonly [Name in keyof Payloads]: Handler<Payloads[Name], unknown> }

const QUEUE = 'chaos'
const soon = { attempts: 100, backoff: { type: 'fixed', delayMs: 50 } } as const
const later = { attempts: 100, backoff: { type: 'fixed', delayMs: 3_000 } } as const
// Work may be killed again and again by chance: it must not be buried for that.
const patient = { ...soon, lostLimit: 100 }

export const defineJobs = (handlers?: Handlers) => {
  const of = <Name extends keyof Payloads>(name: Name) => handlers && { handler: handlers[name] }
  return {
    work: defineJob<Payloads['work']>({ name: 'work', queue: QUEUE, retry: patient, ...of('work') }),
    gate: defineJob<Payloads['gate']>({ name: 'gate', queue: QUEUE, retry: soon, ...of('gate') }),
    block: defineJob<Payloads['block']>({ name: 'block', queue: QUEUE, retry: patient, ...of('block') }),
    poison: defineJob<Payloads['poison']>({ name: 'poison', queue: QUEUE, retry: later, ...of('poison') }),
  }
}

export interface Carrying {
  readonly redis?: RedisOptions | undefined
  readonly rabbitmq?: RabbitmqOptions | undefined
}

/** What `openRedrive` is told so that a broker carries them. */
export function carriedBy(carrying: Carrying): Pick<RedriveOptions, 'transports' | 'queues'> {
  if (carrying.redis) {
    return { transports: { redis: redis(carrying.redis) }, queues: { [QUEUE]: { transport: 'redis' } } }
  }
  if (!carrying.rabbitmq) return {}
  return { transports: { rabbitmq: rabbitmq(carrying.rabbitmq) }, queues: { [QUEUE]: { transport: 'rabbitmq' } } }
}
