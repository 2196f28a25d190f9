// A Redis of our own for BullMQ, from the installed binary: append-only file, flushed to disk every second, as BullMQ's
// guide to production recommends.
import { spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Redis } from 'ioredis'

const START_LIMIT_MS = 10_000

/** @returns {Promise<RedisServer | { missing: string }>} */
export async function startRedis() {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-redis-'))
  const port = await freePort()
  const settings = { port, bind: '127.0.0.1', dir: folder, appendonly: 'yes', appendfsync: 'everysec', save: '' }
  const args = [...Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)])]
  const server = spawn('redis-server', [...args, '--maxmemory-policy', 'noeviction'], { stdio: 'ignore' })
  process.once('exit', () => server.kill('SIGKILL'))
  const failed = new Promise(resolve => {
    server.once('error', error => resolve(`redis-server cannot be started: ${error.message}`))
    server.once('exit', code => resolve(`redis-server ended with code ${code}`))
  })
  const client = new Redis({ port, lazyConnect: true, retryStrategy: () => 50, maxRetriesPerRequest: null })
  client.on('error', () => {}) // until it is up
  const started = client
    .connect()
    .catch(() => {})
    .then(() => client.ping())
  const late = new Promise(resolve => setTimeout(resolve, START_LIMIT_MS, 'redis-server does not answer').unref())
  const answer = await Promise.race([started, failed, late])
  const stop = async () => {
    client.disconnect()
    server.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
  if (answer !== 'PONG') {
    await stop()
    return { missing: String(answer) }
  }
  const version = /redis_version:(\S+)/.exec(await client.info('server'))?.[1]
  return new RedisServer(
    `redis://127.0.0.1:${port}`,
    client,
    `Redis ${version} (appendonly yes, appendfsync everysec)`,
    stop,
  )
}

export class RedisServer {
  /** @param {string} address @param {Redis} client @param {string} facts @param {() => Promise<void>} stop */
  constructor(address, client, facts, stop) {
    this.address = address
    this.client = client
    this.facts = facts
    this.close = stop
  }

  /** Empties it for the next round. @returns {Promise<string>} its address */
  async create() {
    await this.client.flushall()
    return this.address
  }

  /** How many commands it has run. */
  async commands() {
    return Number(/total_commands_processed:(\d+)/.exec(await this.client.info('stats'))?.[1])
  }
}

/** @returns {Promise<number>} */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.on('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}
