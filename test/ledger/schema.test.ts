// The readable dump of the schema is what the migrations make.
import { readFile } from 'node:fs/promises'
import { expect, it } from 'vitest'
import { dumpFreshSchema, SCHEMA_FILE } from '../../scripts/schema-dump.js'

it('src/ledger/schema.sql is what the migrations make', async () => {
  const written = await readFile(SCHEMA_FILE, 'utf8').catch(() => '')
  expect(written, 'src/ledger/schema.sql is not what the migrations make: run `npm run schema`').toBe(
    await dumpFreshSchema(),
  )
})
