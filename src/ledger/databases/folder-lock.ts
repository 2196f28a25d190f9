// One process at a time on an embedded database. The lock is a file that names its holder; it is stale when that
// process is gone, or when its number now belongs to another process (told by the start time, where the system
// shows it). Taking over a stale lock moves it aside first, so that of two who find it stale only one wins.
import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RedriveError } from '../../domain/errors.js'

export interface FolderLock {
  release(): Promise<void>
}

interface Holder {
  readonly pid: number
  readonly startedAt: string | null
  readonly token: string
}

export async function lockFolder(folder: string): Promise<FolderLock> {
  const path = join(folder, 'lock')
  const token = randomUUID()
  const mine: Holder = { pid: process.pid, startedAt: await startOf(process.pid), token }
  const draft = join(folder, `lock.${token}`)
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (;;) {
      try {
        await link(draft, path)
        return { release: () => release(path, token) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const holder = await readHolder(path)
      if (holder && (await isAlive(holder))) throw locked(folder, holder)
      await moveAside(path, holder?.token)
    }
  } finally {
    await rm(draft, { force: true })
  }
}

const locked = (folder: string, holder: Holder) =>
  new RedriveError(
    'LEDGER_LOCKED',
    `The embedded database in ${folder} is open in process ${holder.pid}. Stop that process, choose another folder ` +
      '(REDRIVE_DATA), or use a Postgres server (DATABASE_URL) to run more than one.',
    { details: { folder, pid: holder.pid } },
  )

async function readHolder(path: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(path, 'utf8')) as Holder
  } catch {
    return undefined
  }
}

async function isAlive(holder: Holder): Promise<boolean> {
  try {
    process.kill(holder.pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  return holder.startedAt === null || holder.startedAt === (await startOf(holder.pid))
}

/** The kernel's start time of a process, where /proc shows it: two processes with one number differ in it. */
async function startOf(pid: number): Promise<string | null> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The name, in parentheses, may hold anything; what follows it is plain. Field 22 is the start time.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19] ?? null
  } catch {
    return null
  }
}

async function moveAside(path: string, token: string | undefined): Promise<void> {
  const aside = `${path}.stale.${randomUUID()}`
  try {
    await rename(path, aside)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  const moved = await readHolder(aside)
  // Someone else took over between our look and our move: give it back and look again.
  if (moved && moved.token !== token) await link(aside, path).catch(() => {})
  await unlink(aside)
}

async function release(path: string, token: string): Promise<void> {
  if ((await readHolder(path))?.token === token) await rm(path, { force: true })
}
