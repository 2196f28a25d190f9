// A Redis for tests: the one of the machine, with keys under a prefix of their own that are gone when the test is done;
// and private servers on free ports, which a test may kill. A test without its server is skipped, and says why.
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { onTestFinished, TestRunner } from 'vitest'
import { services } from '../../scripts/services.mjs'
import { systemClock, systemRandom } from '../../src/domain/clock.js'
import type { Broker, BrokerConsumeOptions, BrokerConsumer, Delivery, Message } from '../../src/transport/broker.js'
import { type RedisOptions, redis } from '../../src/transport/transports/redis.js'
import { freePort } from './free-port.js'
import { until } from './until.js'

let refusal: Promise<string | undefined> | undefined

/** The address of the server for tests. Where there is none, the running test is skipped with the reason. */
export async function redisUrl(): Promise<string> {
  const service = services.find(({ name }) => name === 'Redis')
  if (!service) throw new Error('scripts/services.mjs names no Redis')
  const address = process.env[service.variable] || service.defaultAddress
  refusal ??= service.refusal(address)
  const refused = await refusal
  if (refused === undefined) return address
  const reason = `needs a Redis server: ${new URL(address).host} ${refused}; set ${service.variable}`
  TestRunner.getCurrentTest()?.context.skip(reason)
  throw new Error(reason)
}

let prefixes = 0

export interface RedisScene {
  readonly url: string
  readonly prefix: string
  /** A client that knows nothing of Redrive. */
  readonly raw: Redis
  readonly errors: unknown[]
  broker(options?: Partial<RedisOptions>): Broker
  close(): Promise<void>
}

/** A scene of its own; it closes itself when the running test is done, unless `keep`. */
export async function redisScene(
  options: { url?: string; tls?: { ca: string }; keep?: boolean } = {},
): Promise<RedisScene> {
  const url = options.url ?? (await redisUrl())
  prefixes += 1
  const prefix = `redrive-test:${process.pid}-${Date.now()}-${prefixes}:`
  const raw = new Redis(url, { ...secure(options.tls), protocol: 2, retryStrategy: times => Math.min(times * 50, 500) })
  raw.on('error', () => {})
  const errors: unknown[] = []
  const brokers: Broker[] = []
  const close = async () => {
    await Promise.all(brokers.map(broker => broker.close()))
    if (raw.status === 'ready') await removeKeys(raw, `${prefix}*`)
    raw.disconnect()
  }
  if (!options.keep) onTestFinished(close)
  return {
    url,
    prefix,
    raw,
    errors,
    broker(change = {}) {
      const context = { env: {}, clock: systemClock, random: systemRandom, onError: (e: unknown) => errors.push(e) }
      const opened = redis({ url, prefix, ...change }).open(context)
      brokers.push(opened)
      return opened
    },
    close,
  }
}

const secure = (tls: { ca: string } | undefined) => (tls ? { tls } : {})

export async function removeKeys(raw: Redis, pattern: string): Promise<void> {
  for (let cursor = '0'; ; ) {
    const [next, keys] = await raw.scan(cursor, 'MATCH', pattern, 'COUNT', 1_000)
    if (keys.length > 0) await raw.del(...keys)
    if (next === '0') return
    cursor = next
  }
}

export const aMessage = (message: Partial<Message> = {}): Message => ({
  queue: 'mail',
  priority: 5,
  headers: { 'redrive-name': 'send' },
  body: '{}',
  ...message,
})

export interface Hand {
  readonly consumer: BrokerConsumer
  readonly lost: Delivery[]
  readonly errors: unknown[]
  /** Takes so many, waiting until they have arrived. */
  take(many: number, queue?: string): Promise<Delivery[]>
}

/** Somebody who takes from a broker, and keeps what was told. */
export function hand(broker: Broker, options: Partial<BrokerConsumeOptions> = {}): Hand {
  const lost: Delivery[] = []
  const errors: unknown[] = []
  const consumer = broker.consume({
    queues: ['mail'],
    prefetch: 100,
    onWake: () => {},
    onLost: deliveries => void lost.push(...deliveries),
    onError: error => void errors.push(error),
    ...options,
  })
  return {
    consumer,
    lost,
    errors,
    async take(many, queue = 'mail') {
      const taken: Delivery[] = []
      await until(
        `${many} messages came`,
        () => {
          taken.push(...consumer.take(queue, many - taken.length))
          return taken.length === many
        },
        60_000,
      )
      return taken
    },
  }
}

export interface PrivateRedis {
  readonly url: string
  /** As after a power cut. */
  kill(): Promise<void>
  start(): Promise<void>
  stop(): Promise<void>
}

/** Whether a server program is installed. */
export const isInstalled = (program: string): boolean => spawnSync(program, ['--version']).status === 0

/** A server of the test's own, on a free port and in a folder of its own, that writes every change to disk at once. */
export async function privateRedis(
  program = 'redis-server',
  settings: readonly string[] = [],
  access: { tls?: boolean; user?: string; ca?: string } = {},
): Promise<PrivateRedis> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-redis-'))
  const port = await freePort()
  const { user, ca } = access
  const url = `${access.tls ? 'rediss' : 'redis'}://${user ? `${user}@` : ''}127.0.0.1:${port}`
  const ports = access.tls ? ['--port', '0', '--tls-port', `${port}`] : ['--port', `${port}`]
  let server: ChildProcess | undefined
  const start = async () => {
    const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--save', '', '--dir', folder]
    server = spawn(program, [...ports, '--bind', '127.0.0.1', ...durable, ...settings], { stdio: 'ignore' })
    const client = new Redis(url, {
      ...secure(ca ? { ca } : undefined),
      retryStrategy: () => 50,
      maxRetriesPerRequest: null,
    })
    client.on('error', () => {})
    await until(`${program} answers`, async () => (await client.ping().catch(() => '')) === 'PONG', 30_000)
    client.disconnect()
  }
  const kill = async () => {
    if (!server || server.exitCode !== null || server.signalCode !== null) return
    const gone = once(server, 'exit')
    server.kill('SIGKILL')
    await gone
  }
  await start().catch(async error => {
    await kill()
    await rm(folder, { recursive: true, force: true })
    throw error
  })
  return {
    url,
    kill,
    start,
    async stop() {
      await kill()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
