// Migrations: once, whoever asks and however many ask at once; and never on a database that is ahead of us.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { openPg } from '../../src/ledger/databases/pg.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { waitingIn } from '../../src/ledger/job.js'
import { migrate, readMigrations } from '../../src/ledger/migrate.js'
import { checkSchemaName, DEFAULT_SCHEMA } from '../../src/ledger/schema-name.js'
import { administer, DATABASES, freshDatabase } from '../support/databases.js'
import { aJob } from '../support/story.js'

const APPLIED = sql`SELECT version, name, checksum FROM redrive.migration ORDER BY version`
const HAS_JOBS = sql`SELECT to_regclass('redrive.job') IS NOT NULL AS there`
const names = async () => (await readMigrations()).map(migration => migration.name)

const hasJobTable = async (db: Database) => (await db.query<{ there: boolean }>(HAS_JOBS))[0]?.there

describe.each(DATABASES)('$name', ({ open }) => {
  it('brings a new database up to date, and finds nothing to do the second time', async () => {
    const { db } = await open({ migrated: false })
    expect(await migrate(db)).toEqual(await names())
    expect(await hasJobTable(db)).toBe(true)
    const applied = await db.query(APPLIED)
    expect(await migrate(db)).toEqual([])
    expect(await db.query(APPLIED)).toEqual(applied)
    expect(applied).toEqual(
      (await readMigrations()).map(({ version, name, checksum }) => ({ version, name, checksum })),
    )
  })

  it('refuses a database that a newer Redrive has migrated, and changes nothing', async () => {
    const { db } = await open({ migrated: false })
    await db.transaction(async tx => {
      await tx.execute(`CREATE SCHEMA ${db.schema}`)
      await tx.execute(
        `CREATE TABLE ${db.schema}.migration (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL)`,
      )
    })
    await db.query(sql`INSERT INTO redrive.migration VALUES (9999, '9999_from_the_future.sql', 'x')`)
    await expect(migrate(db)).rejects.toMatchObject({
      code: 'SCHEMA_NEWER',
      message: expect.stringContaining('9999_from_the_future.sql'),
    })
    expect(await hasJobTable(db)).toBe(false)
    expect(await db.query(APPLIED)).toHaveLength(1)
  })

  it('refuses a database whose applied migration differs from ours', async () => {
    const { db } = await open()
    await db.query(sql`UPDATE redrive.migration SET checksum = 'another' WHERE version = 1`)
    await expect(migrate(db)).rejects.toMatchObject({ code: 'SCHEMA_CHANGED' })
  })
})

it('needs no right to create schemas where its schema was made for it', async () => {
  const { url, db } = await freshDatabase('server', { migrated: false })
  const role = `redrive_test_role_${process.pid}`
  const made = await administer(url as string, `SELECT current_user AS who`)
  const { who } = made[0] as { who: string }
  await administer(url as string, `CREATE ROLE ${role}`)
  try {
    await administer(url as string, `GRANT ${role} TO "${who}"`)
    await administer(url as string, `CREATE SCHEMA ${DEFAULT_SCHEMA} AUTHORIZATION ${role}`)
    const applied = await db.transaction(async tx => {
      await tx.execute(`SET LOCAL ROLE ${role}`)
      return migrate({ ...db, ...tx, transaction: work => work(tx) })
    })
    expect(applied).toEqual(await names())
  } finally {
    await administer(url as string, `DROP OWNED BY ${role}`)
    await administer(url as string, `DROP ROLE ${role}`)
  }
})

it('ten processes migrate one server at once: one applies, the others find it done', async () => {
  const { db, another } = await freshDatabase('server', { migrated: false })
  const outcomes = await Promise.all(Array.from({ length: 10 }, () => migrate(another({ poolSize: 1 }))))
  expect(outcomes.flat().sort()).toEqual(await names())
  expect(await db.query(APPLIED)).toHaveLength((await names()).length)
})

it('ten processes each with a schema of its own migrate one server at once', async () => {
  const { db, url } = await freshDatabase('server', { migrated: false })
  const ledgers = Array.from({ length: 10 }, (_, index) => openPg(url, { schema: `ledger_${index}`, poolSize: 1 }))
  try {
    expect(await Promise.all(ledgers.map(migrate))).toEqual(await Promise.all(ledgers.map(names)))
  } finally {
    await Promise.all(ledgers.map(ledger => ledger.close()))
  }
  expect(await hasJobTable(db)).toBe(false)
})

describe.each(DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server-schema'))('$name', ({ open }) => {
  it('two schemas of one database live side by side', async () => {
    const [ours, theirs] = [await open(), await open()]
    expect(ours.db.schema).not.toBe(theirs.db.schema)
    await enqueue(ours.db, [aJob()], null)
    expect(await waitingIn(ours.db, 'mail')).toBe(1)
    expect(await waitingIn(theirs.db, 'mail')).toBe(0)
    await theirs.close()
    expect(await waitingIn(ours.db, 'mail')).toBe(1)
  })
})

describe('schema names', () => {
  it.each([DEFAULT_SCHEMA, '_', 'a1_b2', 'a'.repeat(40)])('%s is allowed', name => {
    expect(checkSchemaName(name)).toBe(name)
  })

  it.each([
    '',
    'Redrive',
    '1st',
    'pg_temp',
    'with-dash',
    'a.b',
    'a b',
    'a"; DROP SCHEMA public; --',
    "it's",
    'ä',
    'a\n',
    '$1',
    'a'.repeat(41),
  ])('%j is refused, in words, before it is near any SQL', name => {
    expect(() => checkSchemaName(name)).toThrow(expect.objectContaining({ code: 'SETTING_INVALID' }))
    expect(() => openPg('postgres://127.0.0.1:1/x', { schema: name })).toThrow(/REDRIVE_SCHEMA/)
  })
})
