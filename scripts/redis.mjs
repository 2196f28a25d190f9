// A Redis server of our own for one test run: from the binary installed on this machine, in a temporary folder, on a free
// port of the loopback address.
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'

const START_LIMIT_MS = 30_000
const LOOK_AGAIN_MS = 50

/** The first of these that is installed. */
export function findRedisServer() {
  return ['redis-server', 'valkey-server'].find(name => spawnSync(name, ['--version']).status === 0)
}

/**
 * @param {string} program as found by `findRedisServer`
 * @returns {Promise<{ url: string, stop: () => Promise<void> }>}
 */
export async function startTemporaryRedis(program) {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-redis-'))
  const port = await freePort()
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', '', '--appendonly', 'no']
  const server = spawn(program, args, { cwd: folder, stdio: 'ignore' })
  server.on('error', () => {})
  const stop = async () => {
    if (server.exitCode === null && server.signalCode === null && server.pid) {
      const ended = once(server, 'exit')
      server.kill('SIGKILL')
      await ended
    }
    await rm(folder, { recursive: true, force: true })
  }
  const giveUpAt = performance.now() + START_LIMIT_MS
  while (!(await answers(port))) {
    if (server.exitCode === null && performance.now() < giveUpAt) await setTimeout(LOOK_AGAIN_MS)
    else {
      await stop()
      throw new Error(`${program} did not start`)
    }
  }
  return { url: `redis://127.0.0.1:${port}`, stop }
}

/** @param {number} port @returns {Promise<boolean>} */
function answers(port) {
  return new Promise(resolve => {
    const socket = connect({ host: '127.0.0.1', port, timeout: 2_000 })
    /** @param {boolean} answer */
    const done = answer => {
      socket.destroy()
      resolve(answer)
    }
    socket.on('connect', () => socket.write('PING\r\n'))
    socket.on('data', () => done(true))
    socket.on('timeout', () => done(false))
    socket.on('error', () => done(false))
  })
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  return typeof address === 'object' && address ? address.port : 0
}
