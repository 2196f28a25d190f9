// Opening: every kind of database by what the user gave, and a clear word when it cannot be used, without a password.
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, it, onTestFinished } from 'vitest'
import { systemClock } from '../../src/domain/clock.js'
import { sql } from '../../src/ledger/database.js'
import { type DatabaseChoice, openDatabase } from '../../src/ledger/open.js'
import { serverUrl } from '../support/databases.js'

const ONE = sql`SELECT 1 AS one`

const open = async (choice: DatabaseChoice, folder = 'unused') => {
  const db = await openDatabase(choice, { schema: 'redrive', folder, clock: systemClock })
  onTestFinished(() => db.close())
  return db
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-open-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('what is given decides the kind', () => {
  it.each<[string, () => Promise<DatabaseChoice>, string]>([
    ['nothing: embedded, on disk', async () => undefined, 'embedded'],
    ['":memory:": embedded, in memory', async () => ':memory:', 'embedded'],
    ['a URL: a server', serverUrl, 'server'],
  ])('%s', async (_what, choice, kind) => {
    const db = await open(await choice(), join(await temporaryFolder(), 'made', 'on', 'the', 'way'))
    expect(db.kind).toBe(kind)
    expect(await db.query(ONE)).toEqual([{ one: 1 }])
  })

  it('a pool: used, and left open', async () => {
    const pool = new pg.Pool({ connectionString: await serverUrl() })
    onTestFinished(() => pool.end())
    await (await open(pool)).close()
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }])
  })
})

async function refusingServer(): Promise<string> {
  const fields = ['SFATAL', 'VFATAL', 'C28P01', 'Mwrong password', ''].map(field => `${field}\0`).join('')
  const length = Buffer.alloc(4)
  length.writeInt32BE(fields.length + 4)
  const refusal = Buffer.concat([Buffer.from('E'), length, Buffer.from(fields)])
  const server = createServer(socket => socket.on('error', () => {}).once('data', () => socket.end(refusal)))
  onTestFinished(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return `postgres://ada:open-sesame@127.0.0.1:${(server.address() as AddressInfo).port}/x`
}

describe('a database that cannot be used is refused with what was tried, and no password', () => {
  it.each<[string, Partial<URL>, RegExp]>([
    ['nobody listens', { port: '1' }, /ECONNREFUSED/],
    ['there is no such host', { hostname: 'no-such-host.invalid' }, /ENOTFOUND|EAI_AGAIN/],
    ['there is no such database', { pathname: '/no_such_database' }, /no_such_database.*does not exist/],
    ['there is no such role', { username: 'no_such_role' }, /no_such_role|authentication failed/],
  ])('%s', async (_what, change, why) => {
    const url = Object.assign(new URL(await serverUrl()), { password: 'open-sesame', ...change })
    const error = await open(url.href).then(
      () => undefined,
      (refusal: Error & { code?: string }) => refusal,
    )
    expect(error).toMatchObject({ code: 'DATABASE_UNREACHABLE', message: expect.stringMatching(why) })
    expect(error?.message).toContain(url.hostname)
    expect(error?.message).not.toContain('open-sesame')
  })

  it('the password is wrong', async () => {
    // As much of a server as it takes to refuse one: many real ones trust whoever comes from their own machine.
    const url = new URL(await refusingServer())
    const error = await open(url.href).catch((refusal: Error) => refusal)
    expect(error).toMatchObject({ code: 'DATABASE_UNREACHABLE', message: expect.stringContaining('wrong password') })
    expect((error as Error).message).not.toContain('open-sesame')
  })

  it.each([
    ['another scheme', 'mysql://root:open-sesame@127.0.0.1/x'],
    ['no URL', 'open-sesame'],
    ['a broken URL', 'postgres://user:open-sesame@:not a port/x'],
  ])('%s', async (_what, text) => {
    const error = await open(text).catch((refusal: Error) => refusal)
    expect(error).toMatchObject({ code: 'SETTING_INVALID', message: expect.stringContaining('DATABASE_URL') })
    expect((error as Error).message).not.toContain('open-sesame')
  })

  it('a folder that is a file', async () => {
    const file = join(await temporaryFolder(), 'file')
    await writeFile(file, '')
    await expect(open(undefined, file)).rejects.toMatchObject({
      code: 'DATABASE_UNREACHABLE',
      message: expect.stringContaining(file),
    })
  })
})
