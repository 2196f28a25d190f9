// Making an embedded database takes seconds, opening a copy of one a fraction of that: two are made for the whole run, and
// tests open copies of them (databases.ts). Vitest runs this once, before the first file.
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import type { TestProject } from 'vitest/node'
import { adoptPGlite } from '../../src/ledger/databases/pglite.js'
import { migrate, readMigrations } from '../../src/ledger/migrate.js'
import { DEFAULT_SCHEMA } from '../../src/ledger/schema-name.js'

declare module 'vitest' {
  export interface ProvidedContext {
    embeddedSnapshot: {
      /** The folder of an embedded ledger whose database has nothing in it yet. */
      readonly empty: string
      /** One with the default schema, as it is after the first start. */
      readonly migrated: string
      /** The same as a file, for a copy in memory. */
      readonly dump: string
      /** What it was migrated with: whoever watches the tests may change that while they run. */
      readonly checksum: string
    }
  }
}

export const migrationsChecksum = async (): Promise<string> =>
  (await readMigrations()).map(({ checksum }) => checksum).join()

export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-snapshot-'))
  const checksum = await migrationsChecksum()
  const [empty, migrated, dump] = [join(folder, 'empty'), join(folder, 'migrated'), join(folder, 'pgdata.tar')] as const
  await mkdir(empty)
  await (await PGlite.create(join(empty, 'pgdata'))).close()
  await cp(empty, migrated, { recursive: true })
  const pglite = await PGlite.create(join(migrated, 'pgdata'))
  await migrate(adoptPGlite(pglite, { schema: DEFAULT_SCHEMA }))
  await writeFile(dump, Buffer.from(await (await pglite.dumpDataDir('none')).arrayBuffer()))
  await pglite.close()
  project.provide('embeddedSnapshot', { empty, migrated, dump, checksum })
  return () => rm(folder, { recursive: true, force: true })
}
