// Told not to migrate, Redrive says so when the schema is not there, and changes nothing.
import { expect, it } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { administer, freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'

it('a schema that is missing while `migrate` is off: one error, and nothing is made', async () => {
  const { url = '' } = await freshDatabase('server', { migrated: false })
  const opening = openRedrive({ database: url, schema: 'not_there', migrate: false, env: {}, logger: silent })
  await expect(opening).rejects.toMatchObject({
    code: 'SCHEMA_PENDING',
    message: expect.stringMatching(/schema "not_there" lacks migration 0001_foundation.sql, and `migrate` is off/),
  })
  expect(await administer(url, `SELECT 1 FROM pg_namespace WHERE nspname = 'not_there'`)).toEqual([])
})

it('a schema that is there needs no migration', async () => {
  const { url = '' } = await freshDatabase('server', { migrated: false })
  await (await openRedrive({ database: url, env: {}, logger: silent })).close()
  await (await openRedrive({ database: url, migrate: false, env: {}, logger: silent })).close()
})
