// One process at a time on an embedded database. The lock is a file that names its holder; it is stale when that
// process is gone, or when its number now belongs to another process (told by the start time, where the system
// shows it).
//
// A stale lock is not removed and made again: between the two, a third process could slip in. Instead it has a
// successor: the file `lock.after.<token>`, which only one process can create. Whoever is last in this line has the
// lock; being sure of that, it puts its own name into `lock` in one move and clears the line away. INVARIANT: a file
// of the line is removed only after `lock` names a later holder, so one who followed an outdated line finds out by
// walking it again.
import { randomUUID } from 'node:crypto'
import { link, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RedriveError } from '../../domain/errors.js'

export interface FolderLock {
  release(): Promise<void>
}

interface Holder {
  /** Undefined: the file cannot be read, so nobody is known to hold the lock. */
  readonly pid: number | undefined
  readonly startedAt: string | null
  readonly token: string
}

/** Everyone who had the lock since it was last free, and the file in which the next one would name itself. */
interface Line {
  readonly holders: readonly Holder[]
  readonly files: readonly string[]
  readonly next: string
}

export async function lockFolder(folder: string): Promise<FolderLock> {
  const path = join(folder, 'lock')
  const token = randomUUID()
  const mine: Holder = { pid: process.pid, startedAt: await startOf(process.pid), token }
  const draft = join(folder, `lock.${token}`)
  await writeFile(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (;;) {
      const line = await walk(path)
      const holder = line.holders.at(-1)
      if (holder && (await isAlive(holder))) throw locked(folder, holder)
      if (!(await place(draft, line.next))) continue
      if (!holder) break
      const { holders, files } = await walk(path)
      if (holders.at(-1)?.token === token) {
        await rename(draft, path)
        for (const file of files) if (file !== path) await rm(file, { force: true })
        break
      }
      await rm(line.next, { force: true })
    }
    return { release: () => release(path, token) }
  } finally {
    await rm(draft, { force: true })
  }
}

async function walk(path: string): Promise<Line> {
  const holders: Holder[] = []
  const files: string[] = []
  for (let next = path; ; ) {
    const holder = await readHolder(next, `unreadable-${files.length}`)
    if (!holder) return { holders, files, next }
    holders.push(holder)
    files.push(next)
    next = `${path}.after.${holder.token}`
  }
}

/** False: someone else was first. */
async function place(draft: string, path: string): Promise<boolean> {
  try {
    await link(draft, path)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

const locked = (folder: string, holder: Holder) =>
  new RedriveError(
    'LEDGER_LOCKED',
    `The embedded database in ${folder} is open in process ${holder.pid}. Stop that process, choose another folder ` +
      '(REDRIVE_DATA), or use a Postgres server (DATABASE_URL) to run more than one.',
    { details: { folder, pid: holder.pid } },
  )

const TOKEN = /^[0-9a-f-]{36}$/

/** Undefined: there is no such file. One that is not as we write it counts as left by nobody, under `unreadable`. */
async function readHolder(path: string, unreadable: string): Promise<Holder | undefined> {
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  try {
    const holder = JSON.parse(text) as Holder
    if (Number.isInteger(holder.pid) && TOKEN.test(holder.token)) return holder
  } catch {}
  return { pid: undefined, startedAt: null, token: unreadable }
}

async function isAlive({ pid, startedAt }: Holder): Promise<boolean> {
  if (pid === undefined) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ESRCH') return false
  }
  return startedAt === null || startedAt === (await startOf(pid))
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

async function release(path: string, token: string): Promise<void> {
  if ((await readHolder(path, ''))?.token === token) await rm(path, { force: true })
}
