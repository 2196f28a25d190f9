// RabbitMQ carries live jobs: `openRedrive({ transports: { rabbitmq: rabbitmq({ url }) } })`. One durable queue for each
// queue of Redrive, persistent messages, publisher confirms, manual acknowledgement.
import { invalid } from '../../domain/errors.js'
import { checkName } from '../../domain/names.js'
import type { Broker, BrokerChoice, BrokerContext } from '../broker.js'
import { RabbitConsumer } from './rabbitmq-consumer.js'
import { Control } from './rabbitmq-control.js'
import { Link } from './rabbitmq-link.js'
import { RabbitMirror } from './rabbitmq-mirror.js'
import { Publisher } from './rabbitmq-publisher.js'
import type { QueueForm } from './rabbitmq-queues.js'

export type { BrokerChoice } from '../broker.js'

export interface RabbitmqOptions {
  /** amqp:// or amqps://; AMQP_URL, or the local server, where it is not said. */
  readonly url?: string
  /** Quorum queues instead of classic ones. They keep no order of priority before RabbitMQ 4. */
  readonly quorum?: boolean
  /** Before the name of every queue in RabbitMQ; nothing by default. */
  readonly prefix?: string
  /** Off: the queues are there already, and are not made or checked. */
  readonly declare?: boolean
  /** The queue in RabbitMQ that shows the open dead letters of the queues that RabbitMQ carries. */
  readonly mirror?: string
  /** What enqueue does while RabbitMQ is away: `fail` with BROKER_UNAVAILABLE, or `park` the job in the ledger. */
  readonly whenDown?: 'fail' | 'park'
  /** How long an enqueue may wait for RabbitMQ (5 s). */
  readonly publishTimeoutMs?: number
}

const DEFAULT_URL = 'amqp://127.0.0.1:5672'
const PUBLISH_LIMIT_MS = 5_000

export function rabbitmq(options: RabbitmqOptions = {}): BrokerChoice {
  const { quorum = false, prefix = '', declare = true, mirror, whenDown = 'fail' } = options
  const { publishTimeoutMs = PUBLISH_LIMIT_MS } = options
  if (options.url !== undefined) checkUrl('rabbitmq.url', options.url)
  if (whenDown !== 'fail' && whenDown !== 'park') throw invalid('rabbitmq.whenDown', whenDown, "'fail' or 'park'")
  if (prefix !== '') checkName('rabbitmq.prefix', prefix)
  if (mirror !== undefined) checkName('rabbitmq.mirror', mirror)
  if (!(Number.isInteger(publishTimeoutMs) && publishTimeoutMs >= 100 && publishTimeoutMs <= 600_000)) {
    throw invalid('rabbitmq.publishTimeoutMs', publishTimeoutMs, 'a whole number from 100 to 600000')
  }
  const form: Omit<QueueForm, 'making'> = { prefix, quorum, declare }
  return {
    name: 'rabbitmq',
    whenDown,
    open(context) {
      const url = options.url ?? checkUrl('AMQP_URL', context.env.AMQP_URL || DEFAULT_URL)
      return openRabbitmq(url, { ...form, making: new Map() }, mirror, publishTimeoutMs, context)
    },
  }
}

function checkUrl(what: string, url: string): string {
  const allowed = 'an address that begins with amqp:// or amqps://'
  // Not the address itself: there may be a password in it.
  if (!URL.canParse(url)) throw invalid(what, 'no address', allowed)
  const { protocol } = new URL(url)
  if (protocol !== 'amqp:' && protocol !== 'amqps:') throw invalid(what, protocol, allowed)
  return url
}

function openRabbitmq(
  url: string,
  form: QueueForm,
  mirror: string | undefined,
  publishTimeoutMs: number,
  { clock, random, onError }: BrokerContext,
): Broker {
  // Two connections: RabbitMQ slows down those that publish when it is short of memory, and acknowledgements must get through.
  const link = new Link({ url, clock, random, onError })
  const publisher = new Publisher(link, form, clock, random, publishTimeoutMs)
  const control = new Control(link, clock)
  let taking: Link | undefined
  return {
    name: 'rabbitmq',
    get connected() {
      return link.model !== undefined
    },
    publish: messages => publisher.publish(messages),
    consume(options) {
      taking ??= new Link({ url, clock, random, onError })
      return new RabbitConsumer(taking, form, options, clock, random)
    },
    depth: queue => control.depth(form, queue),
    ...(mirror !== undefined && { mirror: new RabbitMirror(control, form, mirror) }),
    async close() {
      await Promise.all([link.close(), taking?.close()])
    },
  }
}
