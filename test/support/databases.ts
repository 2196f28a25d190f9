// Ledgers for tests: each fresh, migrated, alone, with a clock of its own, and gone when the test file is done.
//
//     describe.each(DATABASES)('$name', ({ open }) => {
//       it('…', async () => { const { db, clock } = await open() … })
//     })
//
// A test that needs a server which is not there is skipped, and the skip says why. Vitest can skip from a test or a
// `beforeEach`, not from a `beforeAll`: for a ledger that several tests share there is `beforeFirst`.
import { cp, mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { afterAll, beforeEach, inject, TestRunner } from 'vitest'
import { services } from '../../scripts/services.mjs'
import type { Database } from '../../src/ledger/database.js'
import { openPg, type PgOptions } from '../../src/ledger/databases/pg.js'
import { adoptPGlite, openPGlite } from '../../src/ledger/databases/pglite.js'
import { migrate } from '../../src/ledger/migrate.js'
import { DEFAULT_SCHEMA } from '../../src/ledger/schema-name.js'
import { migrationsChecksum } from './embedded-snapshot.js'

export type DatabaseKind = 'memory' | 'disk' | 'server' | 'server-schema'

export interface TestClock {
  /** What the ledger takes for now, as ISO text; null: the database's own clock. */
  now: string | null
  /** Moves a set time on; a clock that is not set starts from the process's. */
  advance(ms: number): void
}

export interface FreshOptions {
  /** Where the clock stands at first; null by default. */
  readonly now?: string | null
  /** Off: the schema is not there yet. */
  readonly migrated?: boolean
}

export interface FreshDatabase {
  readonly db: Database
  readonly clock: TestClock
  /** Another way into the same ledger, with the same clock: on a server a pool of its own, as another process has. */
  another(options?: Partial<PgOptions>): Database
  /** The server's address of this very database; undefined when embedded. */
  readonly url?: string
  /** Where an embedded database on disk lives. */
  readonly folder?: string
  close(): Promise<void>
}

/** Every kind of database there is to test; `open` makes a fresh one. */
export const DATABASES: readonly {
  readonly name: string
  readonly kind: DatabaseKind
  readonly open: (options?: FreshOptions) => Promise<FreshDatabase>
}[] = (
  [
    ['embedded, in memory', 'memory'],
    ['embedded, on disk', 'disk'],
    ['Postgres server', 'server'],
    ['Postgres server, schema of another name', 'server-schema'],
  ] as const
).map(([name, kind]) => ({ name, kind, open: options => freshDatabase(kind, options) }))

/** The address of the server for tests. Where there is none, the running test is skipped with the reason. */
export async function serverUrl(): Promise<string> {
  const service = services.find(({ name }) => name === 'Postgres')
  if (!service) throw new Error('scripts/services.mjs names no Postgres')
  const address = process.env[service.variable] || service.defaultAddress
  refusal ??= service.refusal(address)
  const refused = await refusal
  if (refused === undefined) return address
  const reason = `needs a Postgres server: ${new URL(address).host} ${refused}; set ${service.variable}`
  TestRunner.getCurrentTest()?.context.skip(reason)
  throw new Error(reason)
}

/** Makes what the tests of a suite share, before the first of them that is not skipped. */
export function beforeFirst(make: () => Promise<void>): void {
  let made = false
  beforeEach(async () => {
    if (!made) await make()
    made = true
  })
}

let refusal: Promise<string | undefined> | undefined

export async function freshDatabase(kind: DatabaseKind, options: FreshOptions = {}): Promise<FreshDatabase> {
  const clock = testClock(options.now ?? null)
  const fresh = await OPENERS[kind](clock, options.migrated !== false)
  let closing: Promise<void> | undefined
  const close = () => {
    closing ??= fresh.close().finally(() => open.delete(close))
    return closing
  }
  open.add(close)
  if (options.migrated !== false) await migrate(fresh.db)
  return { ...fresh, clock, close }
}

const open = new Set<() => Promise<void>>()

/** What several tests share goes as a whole: it need not be emptied first. */
let allIsDone = false

afterAll(async () => {
  allIsDone = true
  const failed = (await Promise.allSettled([...open].map(close => close()))).find(end => end.status === 'rejected')
  for (const copy of copies) await copy.close()
  const database = await filesDatabase
  if (database !== undefined) await dropDatabase(database)
  if (failed?.status === 'rejected') throw failed.reason
})

function testClock(now: string | null): TestClock {
  return {
    now,
    advance(ms) {
      const from = this.now === null ? Date.now() : Date.parse(this.now)
      this.now = new Date(from + ms).toISOString()
    },
  }
}

type Opened = Omit<FreshDatabase, 'clock'>

const OPENERS: Readonly<Record<DatabaseKind, (clock: TestClock, migrated: boolean) => Promise<Opened>>> = {
  memory: inSharedMemory,
  disk: onDisk,
  server: inDatabaseOfItsOwn,
  'server-schema': inSchemaOfItsOwn,
}

// Making an embedded database costs seconds: each is a copy of one of two that were made for the whole run (see
// embedded-snapshot.ts), and in memory a test file has one, and each test a schema in it.
let inMemory: Promise<PGlite> | undefined
let schemas = 0
const freshSchema = () => `ledger_${process.pid}_${++schemas}`

const copies = new Set<PGlite>()

/** An embedded database of its own, in memory, mostly with the default schema migrated. Closed when the test file is done. */
export async function embeddedCopy(): Promise<PGlite> {
  const { dump, checksum } = inject('embeddedSnapshot')
  const copy = await PGlite.create({ loadDataDir: new Blob([await readFile(dump)]) })
  copies.add(copy)
  if (checksum !== (await migrationsChecksum())) await copy.exec(`DROP SCHEMA ${DEFAULT_SCHEMA} CASCADE`)
  return copy
}

/** Makes a folder what an embedded ledger leaves behind after its first start, or before it was migrated. */
export async function layEmbedded(folder: string, migrated = true): Promise<void> {
  const snapshot = inject('embeddedSnapshot')
  const ready = migrated && snapshot.checksum === (await migrationsChecksum())
  await cp(ready ? snapshot.migrated : snapshot.empty, folder, { recursive: true })
}

/** The copy comes with the default schema: the first test that wants a migrated one has it. */
let defaultIsTaken = false

async function inSharedMemory(clock: TestClock, migrated: boolean): Promise<Opened> {
  inMemory ??= embeddedCopy()
  const pglite = await inMemory
  const schema = migrated && !defaultIsTaken ? DEFAULT_SCHEMA : freshSchema()
  defaultIsTaken ||= migrated
  const options = { schema, now: () => clock.now }
  return {
    db: adoptPGlite(pglite, options),
    another: () => adoptPGlite(pglite, options),
    close: async () => void (allIsDone || (await pglite.exec(`DROP SCHEMA IF EXISTS ${schema} CASCADE`))),
  }
}

async function onDisk(clock: TestClock, migrated: boolean): Promise<Opened> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-test-'))
  const remove = () => rm(folder, { recursive: true, force: true })
  await layEmbedded(folder, migrated)
  const opened = await openPGlite(folder, { schema: DEFAULT_SCHEMA, now: () => clock.now }).catch(async error => {
    await remove()
    throw error
  })
  return {
    db: opened,
    folder,
    another: () => ({ ...opened, close: async () => {} }),
    close: () => opened.close().finally(remove),
  }
}

async function inDatabaseOfItsOwn(clock: TestClock): Promise<Opened> {
  const url = await createDatabase()
  return onServer(url, DEFAULT_SCHEMA, clock, () => dropDatabase(url))
}

let filesDatabase: Promise<string> | undefined

async function inSchemaOfItsOwn(clock: TestClock): Promise<Opened> {
  await serverUrl() // not inside the shared promise: each test is skipped for itself
  filesDatabase ??= createDatabase()
  const url = await filesDatabase
  const schema = freshSchema()
  const remove = async () => allIsDone || (await administer(url, `DROP SCHEMA IF EXISTS ${schema} CASCADE`))
  return onServer(url, schema, clock, remove)
}

function onServer(url: string, schema: string, clock: TestClock, remove: () => Promise<unknown>): Opened {
  const doors = new Set<Database>()
  const another = (options: Partial<PgOptions> = {}) => {
    // A file opens dozens of ledgers, and all files share the server's hundred connections.
    const opened = openPg(url, { schema, now: () => clock.now, idleMs: 3_000, ...options })
    let closing: Promise<void> | undefined
    const door = { ...opened, close: () => (closing ??= opened.close()) }
    doors.add(door)
    return door
  }
  const close = async () => {
    await Promise.allSettled([...doors].map(door => door.close()))
    await remove()
  }
  return { db: another(), url, another, close }
}

// A run that was killed leaves its databases behind: their names tell their age, and the next run removes old ones.
const PREFIX = 'redrive_test_'
const LEFT_BEHIND_MS = 3_600_000
let databases = 0

async function createDatabase(): Promise<string> {
  const server = await serverUrl()
  sweeping ??= sweep(server)
  await sweeping
  const name = `${PREFIX}${Date.now()}_${process.pid}_${++databases}`
  await administer(server, `CREATE DATABASE ${name}`)
  const url = new URL(server)
  url.pathname = name
  return url.href
}

let sweeping: Promise<void> | undefined

async function sweep(server: string): Promise<void> {
  const rows = await administer(server, `SELECT datname FROM pg_database WHERE datname LIKE '${PREFIX}%'`)
  for (const { datname } of rows as { datname: string }[]) {
    const madeAt = Number.parseInt(datname.slice(PREFIX.length), 10)
    if (Date.now() - madeAt > LEFT_BEHIND_MS)
      await administer(server, `DROP DATABASE IF EXISTS ${datname}`).catch(() => {})
  }
}

async function dropDatabase(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1)
  await administer(await serverUrl(), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
}

/** Runs one statement on a connection of its own. */
export async function administer(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url })
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(text)).rows
  } finally {
    await client.end()
  }
}
