// The folder's inbox: a file that is dropped into it becomes a job. A file counts as dropped when it has not changed
// between two looks. What was enqueued is remembered beside it, so that a restart does not enqueue it again; between
// enqueuing and remembering, the unique key of the live job does the same.
import { createHash } from 'node:crypto'
import { mkdir, readdir, stat, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from 'redrive'

export interface InboxOptions {
  /** Of the media; the inbox is below it. */
  readonly folder: string
  readonly enqueue: (inputKey: string, uniqueKey: string) => Promise<unknown>
  readonly log: Log
  readonly lookMs?: number
}

export const INBOX = 'inbox'
const SEEN = '.seen'
const LOOK_MS = 1_000
const MOST_COMPLAINTS = 1_000

export async function watchInbox(options: InboxOptions): Promise<() => Promise<void>> {
  const inbox = new Inbox(options)
  await inbox.open()
  return () => inbox.close()
}

class Inbox {
  readonly #options: InboxOptions
  readonly #folder: string
  readonly #seenFolder: string
  /** Marks of files that were enqueued. */
  readonly #seen = new Set<string>()
  /** How each file looked last time. */
  #last = new Map<string, string>()
  #timer: NodeJS.Timeout | undefined
  #looking: Promise<void> = Promise.resolve()
  #closed = false
  readonly #complained = new Set<string>()

  constructor(options: InboxOptions) {
    this.#options = options
    this.#folder = join(options.folder, INBOX)
    this.#seenFolder = join(options.folder, SEEN)
  }

  async open(): Promise<void> {
    await mkdir(this.#folder, { recursive: true })
    await mkdir(this.#seenFolder, { recursive: true })
    for (const mark of await readdir(this.#seenFolder)) this.#seen.add(mark)
    this.#next()
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#looking
  }

  #next(): void {
    if (this.#closed) return
    this.#timer = setTimeout(() => {
      this.#looking = this.#look().catch(error => this.#complain(error))
      void this.#looking.then(() => this.#next())
    }, this.#options.lookMs ?? LOOK_MS)
  }

  async #look(): Promise<void> {
    const now = new Map<string, string>()
    for (const entry of await readdir(this.#folder, { withFileTypes: true })) {
      if (!entry.isFile() || entry.name.startsWith('.')) continue
      // One that cannot be read, or is gone again, is nothing to the others.
      await this.#take(entry.name, now).catch(error => this.#complain(error))
    }
    this.#last = now
    await this.#forget(new Set(now.values()))
  }

  async #take(name: string, now: Map<string, string>): Promise<void> {
    // One that cannot be looked at is still the one it was.
    const before = this.#last.get(name)
    if (before !== undefined) now.set(name, before)
    const { size, mtimeMs } = await stat(join(this.#folder, name))
    const mark = markOf(name, size, mtimeMs)
    now.set(name, mark)
    if (this.#seen.has(mark) || this.#last.get(name) !== mark) return
    await this.#options.enqueue(`${INBOX}/${name}`, mark)
    this.#options.log.info('enqueued a file of the inbox', { file: name })
    await writeFile(join(this.#seenFolder, mark), '')
    this.#seen.add(mark)
  }

  /** Marks of files that are gone or changed are of no use any more. */
  async #forget(present: ReadonlySet<string>): Promise<void> {
    for (const mark of this.#seen) {
      if (present.has(mark)) continue
      await unlink(join(this.#seenFolder, mark)).catch(() => {})
      this.#seen.delete(mark)
    }
  }

  /** Once for each sort of trouble: the next look is a second away. */
  #complain(error: unknown): void {
    const message = error instanceof Error ? error.message : String(error)
    if (this.#complained.has(message) || this.#complained.size >= MOST_COMPLAINTS) return
    this.#complained.add(message)
    this.#options.log.warn('could not look into the inbox; trying again', { error: message })
  }
}

const markOf = (name: string, size: number, mtimeMs: number) =>
  createHash('sha256').update(`${name}\0${size}\0${mtimeMs}`).digest('hex')
