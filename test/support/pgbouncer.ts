// A real PgBouncer before a database of a test, as teams have it: connections go from hand to hand with each transaction.
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { TestRunner } from 'vitest'
import { freePort } from './free-port.js'

/** Debian keeps it where only root looks. */
const FOLDERS = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin']
const STARTS_WITHIN_MS = 10_000

export interface Pooler {
  /** The address of the same database, through it. */
  readonly url: string
  stop(): Promise<void>
}

/** Where there is none, the running test is skipped with the reason. */
export async function startPgBouncer(address: string, connections: number): Promise<Pooler> {
  const program = FOLDERS.map(folder => join(folder, 'pgbouncer')).find(path => existsSync(path))
  if (program === undefined) {
    const reason = 'needs PgBouncer: the program pgbouncer is not installed'
    TestRunner.getCurrentTest()?.context.skip(reason)
    throw new Error(reason)
  }
  const server = new URL(address)
  const port = await freePort()
  const folder = await mkdtemp(join(tmpdir(), 'redrive-pgbouncer-'))
  const config = join(folder, 'pgbouncer.ini')
  await writeFile(config, configOf(server, port, connections))
  // It does not run as root, and whoever it runs as has to read this.
  await Promise.all([chmod(folder, 0o755), chmod(config, 0o644)])
  const child = spawn(program, [...(process.getuid?.() === 0 ? ['-u', 'nobody'] : []), config])
  const stop = async () => {
    child.kill('SIGKILL')
    await rm(folder, { recursive: true, force: true })
  }
  await untilUp(child).catch(async error => {
    await stop()
    throw error
  })
  const pooled = new URL(address)
  pooled.host = `127.0.0.1:${port}`
  return { url: pooled.href, stop }
}

const configOf = ({ hostname, port: serverPort, username, password }: URL, port: number, connections: number) => `
[databases]
* = host=${hostname} port=${serverPort || 5432} user=${decodeURIComponent(username)}${password && ` password=${decodeURIComponent(password)}`}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = ${connections}
ignore_startup_parameters = statement_timeout,idle_in_transaction_session_timeout
`

function untilUp(child: ChildProcess): Promise<void> {
  let said = ''
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(new Error(`PgBouncer did not start:\n${said}`))
    const timer = setTimeout(giveUp, STARTS_WITHIN_MS)
    child.stderr?.on('data', data => {
      said += data
      if (!said.includes('process up')) return
      clearTimeout(timer)
      resolve()
    })
    child.on('error', giveUp)
    child.on('exit', giveUp)
  })
}
