// `npm run schema`: writes src/ledger/schema.sql anew, after a migration was added.
import { writeFile } from 'node:fs/promises'
import { dumpFreshSchema, SCHEMA_FILE } from './schema-dump.js'

await writeFile(SCHEMA_FILE, await dumpFreshSchema())
