// The embedded database's first start, cut short: the next one begins again instead of failing for ever.
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openPGlite } from '../../src/ledger/databases/pglite.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-first-start-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const open = () => openPGlite(folder, { schema: 'redrive' })

/** As a process leaves it that was killed while it made the database. */
async function leaveHalfADatabase() {
  await mkdir(join(folder, 'pgdata', 'base'), { recursive: true })
  await writeFile(join(folder, 'pgdata', 'PG_VERSION'), '17\n')
}

it('a database that was never finished is made again, and stays', async () => {
  await leaveHalfADatabase()
  await writeFile(join(folder, 'unfinished'), '')
  const first = await open()
  await first.query({ text: 'CREATE TABLE kept AS SELECT 1 AS one' })
  await first.close()
  expect((await readdir(folder)).sort()).toEqual(['pgdata'])
  const second = await open()
  expect(await second.query({ text: 'SELECT one FROM kept' })).toEqual([{ one: 1 }])
  await second.close()
})

it('a database that cannot be opened, but was finished once, is never thrown away', async () => {
  await leaveHalfADatabase()
  await expect(open()).rejects.toMatchObject({ code: 'DATABASE_UNREACHABLE' })
  expect(await readdir(join(folder, 'pgdata'))).toContain('PG_VERSION')
})
