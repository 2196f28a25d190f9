// A Postgres server of our own for one test run: made from the binaries installed on this machine, in a
// temporary folder, on a free port of the loopback address, with a password nobody else knows.
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync } from 'node:fs'
import { appendFile, chown, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

const execute = promisify(execFile)

const COMMAND_TIMEOUT_MS = 60_000

// The data is thrown away afterwards: there is no need to wait for the disk.
const SETTINGS = `
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
fsync = off
max_connections = 200
`

/** The newest folder that holds both `initdb` and `pg_ctl`: on PATH, or where Debian keeps them. */
export function findPostgresBinaries() {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  const folders = [
    ...(process.env.PATH ?? '').split(delimiter).filter(Boolean),
    ...versions.map(version => join(debian, version, 'bin')),
  ]
  return folders.find(folder => ['initdb', 'pg_ctl'].every(name => existsSync(join(folder, name))))
}

/**
 * @typedef {object} TemporaryPostgres
 * @property {string} url a superuser's connection URL
 * @property {(mode?: 'fast' | 'immediate') => Promise<void>} restart fast: as an operator would, running transactions
 *   are rolled back; immediate: as after a crash, the server recovers from its log
 * @property {() => Promise<void>} stop ends the server and removes its folder; safe to call twice
 */

/**
 * @param {string} binaries as found by `findPostgresBinaries`
 * @returns {Promise<TemporaryPostgres>}
 */
export async function startTemporaryPostgres(binaries) {
  const owner = await unprivilegedOwner()
  const folder = await mkdtemp(join(tmpdir(), 'redrive-postgres-'))
  const data = join(folder, 'data')
  const log = join(folder, 'server.log')
  const password = randomBytes(16).toString('hex')
  const port = await freePort()

  /** @param {string} name @param {string[]} args */
  const command = (name, ...args) =>
    execute(join(binaries, name), ['-D', data, ...args], { ...owner, cwd: folder, timeout: COMMAND_TIMEOUT_MS })
  const stop = async () => {
    await command('pg_ctl', '-m', 'immediate', '-w', 'stop').catch(() => {}) // it may never have started
    await rm(folder, { recursive: true, force: true })
  }

  try {
    const secret = join(folder, 'password')
    await writeFile(secret, password, { mode: 0o600 })
    if (owner) for (const path of [folder, secret]) await chown(path, owner.uid, owner.gid)
    const login = ['--username=redrive', `--pwfile=${secret}`, '--auth=scram-sha-256']
    await command('initdb', ...login, '--encoding=UTF8', '--locale=C', '--no-sync')
    await appendFile(join(data, 'postgresql.conf'), `${SETTINGS}port = ${port}\n`)
    await command('pg_ctl', '-l', log, '-w', 'start')
  } catch (error) {
    const tail = (await readFile(log, 'utf8').catch(() => '')).split('\n').slice(-5).join('\n')
    await stop()
    throw new Error(`${error instanceof Error ? error.message : error}\n${tail}`.trim())
  }

  return {
    url: `postgres://redrive:${password}@127.0.0.1:${port}/postgres`,
    restart: async (mode = 'fast') => void (await command('pg_ctl', '-l', log, '-m', mode, '-w', 'restart')),
    stop,
  }
}

/** initdb refuses to run as root: the user to run it as then; undefined when we may run it ourselves. */
async function unprivilegedOwner() {
  if (process.getuid?.() !== 0) return undefined
  for (const user of ['postgres', 'nobody']) {
    const ids = await Promise.all(['-u', '-g'].map(flag => execute('id', [flag, user]))).catch(() => [])
    const [uid, gid] = ids.map(({ stdout }) => Number(stdout))
    if (uid !== undefined && gid !== undefined) return { uid, gid }
  }
  throw new Error('initdb cannot run as root, and there is no user "postgres" or "nobody" to run it as')
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
