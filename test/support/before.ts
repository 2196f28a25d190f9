// A ledger as a version before had it: its migrations up to there, and then whatever was in it.
import { type Database, sql, type Transaction } from '../../src/ledger/database.js'
import { readMigrations } from '../../src/ledger/migrate.js'
import { inSchema } from '../../src/ledger/schema-name.js'

/** On a database without a schema. `then`: in the same transaction. */
export async function migratedBefore(
  db: Database,
  version: number,
  then: (tx: Transaction) => Promise<unknown>,
): Promise<void> {
  const before = (await readMigrations()).filter(migration => migration.version < version)
  await db.transaction(async tx => {
    await tx.execute(`CREATE SCHEMA redrive;
      CREATE TABLE redrive.migration (version integer PRIMARY KEY, name text NOT NULL, checksum text NOT NULL)`)
    for (const { version, name, checksum, text } of before) {
      await tx.execute(inSchema(text, db.schema))
      await tx.query(sql`INSERT INTO redrive.migration VALUES ($1, $2, $3)`, [version, name, checksum])
    }
    await then(tx)
  })
}
