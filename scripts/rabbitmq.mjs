// A RabbitMQ node of our own, for a test run or for a test that kills it: made from what is installed on this machine, in
// a temporary folder, on free ports of the loopback address.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

const START_LIMIT_MS = 120_000
const LOOK_AGAIN_MS = 200

/** The script that runs a node as whoever calls it. Debian's own on PATH insists on a user of its own. */
export function findRabbitmqServer() {
  const folders = ['/usr/lib/rabbitmq/bin', ...(process.env.PATH ?? '').split(delimiter).filter(Boolean)]
  return folders.map(folder => join(folder, 'rabbitmq-server')).find(path => existsSync(path))
}

/**
 * @typedef {object} TemporaryRabbitmq
 * @property {string} url
 * @property {() => Promise<void>} kill as by kill -9: acknowledgements of the last moments may be forgotten
 * @property {() => Promise<void>} end as an operator would
 * @property {() => Promise<void>} start again, with what is on disk
 * @property {() => Promise<void>} stop ends the node and removes its folder; safe to call twice
 */

/**
 * @param {string} program as found by `findRabbitmqServer`
 * @returns {Promise<TemporaryRabbitmq>}
 */
export async function startTemporaryRabbitmq(program) {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-rabbitmq-'))
  const [port, distribution] = [await freePort(), await freePort()]
  const log = join(folder, 'server.log')
  const env = {
    ...process.env,
    HOME: folder,
    ERL_EPMD_ADDRESS: '127.0.0.1',
    RABBITMQ_NODENAME: `redrive-${randomBytes(4).toString('hex')}@localhost`,
    RABBITMQ_NODE_IP_ADDRESS: '127.0.0.1',
    RABBITMQ_NODE_PORT: String(port),
    RABBITMQ_DIST_PORT: String(distribution),
    RABBITMQ_MNESIA_BASE: folder,
    RABBITMQ_LOG_BASE: folder,
    RABBITMQ_LOGS: log,
    RABBITMQ_PID_FILE: join(folder, 'pid'),
    RABBITMQ_ENABLED_PLUGINS_FILE: join(folder, 'plugins'),
    RABBITMQ_CONFIG_FILE: join(folder, 'none'),
    RABBITMQ_CONF_ENV_FILE: '/dev/null',
    RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
  }
  /** @type {import('node:child_process').ChildProcess | undefined} */
  let node

  /** @param {NodeJS.Signals} signal */
  const signalled = async signal => {
    const running = node
    node = undefined
    if (!running?.pid || running.exitCode !== null || running.signalCode !== null) return
    const ended = once(running, 'exit')
    // The script and the machine under it are one group, which is ours alone.
    process.kill(-running.pid, signal)
    await ended
  }
  const kill = () => signalled('SIGKILL')
  const start = async () => {
    node = spawn(program, [], { env, cwd: folder, detached: true, stdio: 'ignore' })
    node.on('error', () => {})
    const giveUpAt = performance.now() + START_LIMIT_MS
    while (!(await greets(port))) {
      if (node.exitCode === null && performance.now() < giveUpAt) await setTimeout(LOOK_AGAIN_MS)
      else throw new Error(`RabbitMQ did not start\n${await tailOf(log)}`)
    }
  }
  const stop = async () => {
    await kill()
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await start()
  } catch (error) {
    await stop()
    throw error
  }
  return { url: `amqp://guest:guest@127.0.0.1:${port}`, kill, end: () => signalled('SIGTERM'), start, stop }
}

/** Whether it speaks AMQP: a port is open before that. @param {number} port @returns {Promise<boolean>} */
function greets(port) {
  return new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 2_000 })
    /** @param {boolean} answer */
    const done = answer => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => socket.write('AMQP\0\0\x09\x01'))
    socket.on('data', () => done(true))
    socket.on('timeout', () => done(false))
    socket.on('error', () => done(false))
    socket.on('close', () => done(false))
  })
}

/** @param {string} log */
async function tailOf(log) {
  return (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(-5).join('\n')
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
