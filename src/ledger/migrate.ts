// Forward-only migrations, safe to run by many processes at once: the first takes a lock, the others wait and find
// the work done. Each migration is one transaction and is remembered with a checksum. A database that knows more
// migrations than we do belongs to a newer Redrive: it is refused and left alone.
import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { RedriveError } from '../domain/errors.js'
import { type Database, sql, type Transaction } from './database.js'
import { inSchema } from './schema-name.js'

export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  readonly checksum: string
}

const FOLDER = new URL('./migrations/', import.meta.url)
const OLDEST_SERVER = 140_000

const SERVER_VERSION = sql`SELECT current_setting('server_version_num')::integer AS version`
// One lock for all schemas of a database: making a schema is not safe to do twice at once.
const LOCK = sql`SELECT pg_advisory_xact_lock(7203371, 1)`
const TABLE_EXISTS = sql`SELECT to_regclass('redrive.migration') IS NOT NULL AS exists`
const APPLIED = sql`SELECT version, name, checksum FROM redrive.migration ORDER BY version`
const REMEMBER = sql`INSERT INTO redrive.migration (version, name, checksum) VALUES ($1, $2, $3)`
// IF NOT EXISTS would still want the right to create schemas, which a role whose schema was made for it need not have.
const FIRST = `DO $$ BEGIN
  IF to_regnamespace('"redrive_schema_name"') IS NULL THEN CREATE SCHEMA "redrive_schema_name"; END IF;
END $$;
CREATE TABLE IF NOT EXISTS redrive.migration (
  version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now()
)`

export async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(FOLDER)).filter(name => name.endsWith('.sql')).sort()
  return Promise.all(
    names.map(async name => {
      const text = await readFile(new URL(name, FOLDER), 'utf8')
      const checksum = createHash('sha256').update(text).digest('hex')
      return { version: Number.parseInt(name, 10), name, text, checksum }
    }),
  )
}

/** Brings the schema up to date; returns the names of what was applied, [] when there was nothing to do. */
export async function migrate(db: Database): Promise<string[]> {
  const migrations = await readMigrations()
  await checkServer(db)
  if ((await pending(db, migrations)).length === 0) return []
  const applied: string[] = []
  for (;;) {
    const name = await db.transaction(async tx => applyNext(tx, db.schema, migrations))
    if (name === undefined) return applied
    applied.push(name)
  }
}

/** The names of what `migrate` would apply. */
export async function pendingMigrations(db: Database): Promise<string[]> {
  await checkServer(db)
  return (await pending(db, await readMigrations())).map(({ name }) => name)
}

async function checkServer(db: Database): Promise<void> {
  const [row] = await db.query<{ version: number }>(SERVER_VERSION)
  const version = Number(row?.version)
  if (version < OLDEST_SERVER) {
    const shown = `${Math.floor(version / 10_000)}.${version % 10_000}`
    throw new RedriveError('DATABASE_TOO_OLD', `The server runs Postgres ${shown}; Redrive needs 14 or newer.`)
  }
}

async function applyNext(tx: Transaction, schema: string, migrations: Migration[]): Promise<string | undefined> {
  await tx.query(LOCK)
  await tx.execute(inSchema(FIRST, schema))
  const [next] = await pending(tx, migrations)
  if (!next) return undefined
  await tx.execute(inSchema(next.text, schema))
  await tx.query(REMEMBER, [next.version, next.name, next.checksum])
  return next.name
}

async function pending(db: Pick<Database, 'query'>, migrations: readonly Migration[]): Promise<Migration[]> {
  const [table] = await db.query<{ exists: boolean }>(TABLE_EXISTS)
  if (!table?.exists) return [...migrations]
  const applied = await db.query<{ version: number; name: string; checksum: string }>(APPLIED)
  const known = new Map(migrations.map(migration => [migration.version, migration]))
  for (const { version, name, checksum } of applied) {
    const ours = known.get(version)
    if (!ours) {
      throw new RedriveError(
        'SCHEMA_NEWER',
        `The database has migration ${name}, which this version of Redrive does not know. Upgrade this process.`,
      )
    }
    if (ours.checksum !== checksum) {
      throw new RedriveError('SCHEMA_CHANGED', `Migration ${name} was applied with other contents than it has here.`)
    }
  }
  const done = new Set(applied.map(row => row.version))
  return migrations.filter(migration => !done.has(migration.version))
}
