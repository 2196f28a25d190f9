// A folder as storage: the embedded default. Keys are paths below it and cannot leave it, not by `..` and not by a
// symbolic link. A file is written beside, flushed, and renamed into place.
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, mkdir, open, readdir, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { AuthenticationError, PermanentError, SystemError, ValidationError } from 'redrive'
import { HEAD_BYTES, STORAGE_SERVICE, type Storage, type StoredObject, type WriteOptions } from '../storage.js'

/** Below the folder, so that a rename into place stays on one file system. */
const UNFINISHED = '.unfinished'
const PIECE_BYTES = 64 * 1024
const UNFINISHED_FOR_MS = 24 * 3_600_000

export class FolderStorage implements Storage {
  readonly name: string
  readonly #root: string

  constructor(folder: string) {
    this.#root = resolve(folder)
    this.name = `the folder ${folder}`
  }

  /** Makes the folder, and removes what a killed process left unfinished long ago. */
  async check(): Promise<void> {
    const unfinished = join(this.#root, UNFINISHED)
    await mkdir(unfinished, { recursive: true })
    for (const name of await readdir(unfinished)) {
      const path = join(unfinished, name)
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Number.POSITIVE_INFINITY }))
      if (Date.now() - mtimeMs > UNFINISHED_FOR_MS) await rm(path, { force: true })
    }
  }

  async open(key: string): Promise<StoredObject> {
    const path = this.#path(key)
    try {
      const inside = relative(await realpath(this.#root), await realpath(path))
      if (leaves(inside)) throw outside(key)
      // Not blocking: opening a pipe would wait for a writer for ever.
      const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
      return await openedFile(key, file).catch(async error => {
        await file.close()
        throw error
      })
    } catch (error) {
      throw explained(error, key, this.name)
    }
  }

  async write(key: string, body: Uint8Array | Readable, { signal }: WriteOptions): Promise<void> {
    const path = this.#path(key)
    const unfinished = join(this.#root, UNFINISHED, `${randomUUID()}-${basename(path).slice(-40)}`)
    try {
      await mkdir(dirname(unfinished), { recursive: true })
      await mkdir(dirname(path), { recursive: true })
      if (leaves(relative(await realpath(this.#root), await realpath(dirname(path))))) throw outside(key)
      const file = await open(unfinished, 'wx')
      const stream = body instanceof Readable ? body : Readable.from([body])
      await pipeline(stream, file.createWriteStream({ flush: true }), signal ? { signal } : {})
      await rename(unfinished, path)
    } catch (error) {
      await rm(unfinished, { force: true })
      throw explained(error, key, this.name)
    }
  }

  async close(): Promise<void> {}

  #path(key: string): string {
    const path = resolve(this.#root, key)
    if (key.includes('\0') || path === this.#root || leaves(relative(this.#root, path))) throw outside(key)
    return path
  }
}

async function openedFile(key: string, file: FileHandle): Promise<StoredObject> {
  const stats = await file.stat()
  if (!stats.isFile()) throw new ValidationError(`${JSON.stringify(key)} is not a file`)
  const head = Buffer.alloc(Math.min(HEAD_BYTES, stats.size))
  const { bytesRead } = await file.read(head, 0, head.length, 0)
  return {
    key,
    size: stats.size,
    head: head.subarray(0, bytesRead),
    read: async (start, end, signal) => pieces(file, start, end, signal),
    close: () => file.close(),
  }
}

/** Not a stream of the file itself: that would close it when its reader has had enough. */
async function* pieces(file: FileHandle, start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
  for (let at = start; at < end; ) {
    signal.throwIfAborted()
    const length = Math.min(PIECE_BYTES, end - at)
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(length), 0, length, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

const leaves = (path: string) => path === '..' || path.startsWith(`..${sep}`) || isAbsolute(path)

const outside = (key: string) => new ValidationError(`The key ${JSON.stringify(key)} leads out of the folder`)

function explained(error: unknown, key: string, name: string): unknown {
  const shown = JSON.stringify(key)
  switch ((error as NodeJS.ErrnoException).code) {
    case 'ENOENT':
    case 'ENOTDIR':
      return new PermanentError(`There is no file ${shown} in ${name}`, { cause: error, code: 'NOT_FOUND' })
    case 'ENAMETOOLONG':
      return new ValidationError(`The key ${shown} is too long for a file name`, { cause: error })
    case 'EISDIR':
      return new ValidationError(`${shown} is a folder, not a file`, { cause: error })
    case 'EACCES':
    case 'EPERM':
      return new AuthenticationError(`${name} does not let us use ${shown}`, { cause: error })
    case 'ENOSPC':
    case 'EMFILE':
      return new SystemError(`${name}: ${(error as Error).message}`, { cause: error, service: STORAGE_SERVICE })
    default:
      return error
  }
}
