// The embedded Postgres: PGlite inside this process, on disk or in memory. One process at a time has a folder
// open (folder-lock.ts). There is nobody else to hear from, so it does not LISTEN.
import { access, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PGlite, type Transaction as PGliteTransaction } from '@electric-sql/pglite'
import { RedriveError } from '../../domain/errors.js'
import type { Database, Param, Queryable, Statement } from '../database.js'
import { statementTexts } from '../schema-name.js'
import { type FolderLock, lockFolder } from './folder-lock.js'

export interface PGliteOptions {
  readonly schema: string
  readonly now?: () => string | null
}

const IN_MEMORY = ':memory:'

/** `folder`: where the database lives, or ':memory:'. */
export async function openPGlite(folder: string, options: PGliteOptions): Promise<Database> {
  if (folder === IN_MEMORY) return embedded(await PGlite.create(), options, undefined)
  await mkdir(folder, { recursive: true, mode: 0o700 }).catch(cause => {
    throw new RedriveError('DATABASE_UNREACHABLE', `The folder ${folder} cannot be made: ${cause.message}`, { cause })
  })
  const lock = await lockFolder(folder)
  try {
    return embedded(await openData(folder), options, lock)
  } catch (cause) {
    await lock.release()
    const message = `The embedded database in ${folder} could not be opened: ${(cause as Error).message}`
    throw new RedriveError('DATABASE_UNREACHABLE', message, { cause })
  }
}

/**
 * A first start that is cut short leaves half a database, which can never be opened. So a file says while one is being
 * made; whoever finds it begins again, because nothing can have been acknowledged yet. Needs the folder's lock.
 */
async function openData(folder: string): Promise<PGlite> {
  const data = join(folder, 'pgdata')
  const unfinished = join(folder, 'unfinished')
  if (await exists(unfinished)) await rm(data, { recursive: true, force: true })
  else if (await exists(data)) return PGlite.create(data)
  await writeFile(unfinished, '')
  const db = await PGlite.create(data)
  await rm(unfinished)
  return db
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  )

export const isPGlite = (value: object): value is PGlite => value instanceof PGlite

/** An embedded database that belongs to the caller: used, never closed. Several schemas can share one. */
export const adoptPGlite = (db: PGlite, options: PGliteOptions): Database => ({
  ...embedded(db, options, undefined),
  close: async () => {},
})

function embedded(db: PGlite, options: PGliteOptions, lock: FolderLock | undefined): Database {
  const render = statementTexts(options.schema)
  const now = options.now ?? (() => null)
  const on = (client: Pick<PGliteTransaction, 'query'>): Queryable => ({
    now,
    query: async <Row>(statement: Statement, params: readonly Param[] = []) =>
      (await client.query<Row>(render(statement), [...params]).catch(withoutData)).rows,
  })
  let closing: Promise<void> | undefined
  return {
    kind: 'embedded',
    exclusive: lock !== undefined,
    schema: options.schema,
    ...on(db),
    transaction: work => db.transaction(tx => work({ ...on(tx), execute: async text => void (await tx.exec(text)) })),
    within: client => ({
      now,
      query: async <Row>(statement: Statement, params: readonly Param[] = []) =>
        (await client.query(render(statement), [...params])).rows as Row[],
    }),
    listen: () => undefined,
    close() {
      closing ??= db.close().finally(() => lock?.release())
      return closing
    },
  }
}

/** PGlite hangs the statement and its parameters on an error: they may be logged there, and hold payloads. */
function withoutData(error: Error & { query?: unknown; params?: unknown; queryOptions?: unknown }): never {
  delete error.query
  delete error.params
  delete error.queryOptions
  throw error
}
