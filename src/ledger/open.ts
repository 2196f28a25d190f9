// Opens the ledger's database: finds out which kind is meant, makes sure that it answers, and says clearly why not.
import type { Clock } from '../domain/clock.js'
import { invalid, isRedriveError, RedriveError } from '../domain/errors.js'
import { type Database, type ForeignClient, sql } from './database.js'
import { adoptPg, openPg } from './databases/pg.js'

/** A URL, ':memory:', a `pg.Pool`, anything with query(text, params); undefined: embedded, on disk. */
export type DatabaseChoice = string | ForeignClient | { connect: unknown; query: unknown } | undefined

export interface OpenOptions {
  readonly schema: string
  readonly folder: string
  readonly clock: Clock
  readonly now?: () => string | null
  readonly poolSize?: number
  readonly statementTimeoutMs?: number
  readonly listen?: boolean
}

const HELLO = sql`SELECT 1 AS hello`

export async function openDatabase(choice: DatabaseChoice, options: OpenOptions): Promise<Database> {
  if (choice === undefined || choice === ':memory:') {
    const { openPGlite } = await embedded()
    return openPGlite(choice ?? options.folder, options)
  }
  if (typeof choice === 'string') return reachable(openPg(checkUrl(choice), options), choice)
  if (typeof choice === 'object' && choice !== null && typeof choice.query === 'function') {
    return reachable(await adopt(choice, options), undefined)
  }
  throw invalid('database', typeof choice, ALLOWED)
}

/** At most so many people's questions at once. */
const DESK_POOL_SIZE = 4

/**
 * Another way into the same ledger, for what people ask: a few connections of its own and a short limit, so that a slow page
 * takes nothing from workers. Undefined where there can be none: an embedded database has one connection, and a pool that
 * was given is the giver's to divide.
 */
export function openDesk(
  choice: DatabaseChoice,
  options: OpenOptions,
  statementTimeoutMs: number,
): Database | undefined {
  if (typeof choice !== 'string' || choice === ':memory:') return undefined
  return openPg(choice, { ...options, statementTimeoutMs, poolSize: DESK_POOL_SIZE, listen: false })
}

async function adopt(client: object, options: OpenOptions): Promise<Database> {
  // Only a PGlite has it, and whoever brings one has loaded it.
  if ('execProtocolRaw' in client) {
    const { isPGlite, adoptPGlite } = await embedded()
    if (isPGlite(client)) return adoptPGlite(client, options)
  }
  return adoptPg(client as ForeignClient, options)
}

/** Loaded where it is used: it takes 20 MB, which a worker on a server has no use for. */
const embedded = () => import('./databases/pglite.js')

const ALLOWED = "a postgres:// URL, ':memory:', a pg Pool, something with query(text, params), or nothing for embedded"

function checkUrl(text: string): string {
  if (!/^postgres(ql)?:\/\//.test(text)) {
    // Only the scheme is shown: the rest may hold a password.
    const scheme = /^[a-z0-9+.-]{1,20}:/i.exec(text)?.[0] ?? 'a text without a scheme'
    throw new RedriveError('SETTING_INVALID', `database (DATABASE_URL) is ${scheme}…; it must be ${ALLOWED}`)
  }
  try {
    new URL(text)
  } catch {
    throw new RedriveError(
      'SETTING_INVALID',
      'database (DATABASE_URL) is not a URL; it must be postgres://user:password@host:port/name',
    )
  }
  return text
}

async function reachable(db: Database, url: string | undefined): Promise<Database> {
  try {
    await db.query(HELLO)
    return db
  } catch (cause) {
    await db.close().catch(() => {})
    if (isRedriveError(cause)) throw cause
    throw new RedriveError('DATABASE_UNREACHABLE', `The database ${addressOf(url)} cannot be used: ${because(cause)}`, {
      cause,
    })
  }
}

/** Where it was looked for, without user and password. What the URL leaves out, the driver takes from PG* variables. */
function addressOf(url: string | undefined): string {
  if (url === undefined) return 'that was given'
  const { hostname, port, pathname, searchParams } = new URL(url)
  const { PGHOST, PGPORT, PGDATABASE = '' } = process.env
  const host = searchParams.get('host') || decodeURIComponent(hostname) || PGHOST || 'localhost'
  return `at ${host}:${port || PGPORT || 5432}/${pathname.slice(1) || PGDATABASE}`
}

function because(cause: unknown): string {
  // A host with several addresses fails with one error for each.
  if (cause instanceof AggregateError) return cause.errors.map(because).join('; ')
  return (cause as Error).message || String(cause)
}
