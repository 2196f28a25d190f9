// A database that cannot be used is one clear error with a code, never a password, and nothing left open.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { openRedrive } from '../../src/index.js'
import { freshDatabase, layEmbedded, serverUrl } from '../support/databases.js'
import { silent } from '../support/runtime.js'

const SECRET = 'S3cr3t-pass'

/** What opening fails with. */
async function refusal(database: string): Promise<Error & { code: string }> {
  const opened = await openRedrive({ database, env: {}, logger: silent }).catch(error => error)
  if (!(opened instanceof Error)) await opened.close()
  expect(opened).toBeInstanceOf(Error)
  const told = `${opened.message} ${JSON.stringify(opened)} ${JSON.stringify(opened.details)}`
  expect(told, 'no password is told').not.toContain(SECRET)
  expect(opened.message, 'in one line').not.toContain('\n')
  return opened
}

async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-errors-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  return folder
}

describe('a server', () => {
  it('that is not there: address and cause', async () => {
    const closed = createServer()
    await new Promise<void>(resolve => void closed.listen(0, '127.0.0.1', resolve))
    const { port } = closed.address() as { port: number }
    await new Promise(resolve => closed.close(resolve))
    const error = await refusal(`postgres://ada:${SECRET}@127.0.0.1:${port}/shop`)
    expect(error.code).toBe('DATABASE_UNREACHABLE')
    expect(error.message).toBe(
      `The database at 127.0.0.1:${port}/shop cannot be used: connect ECONNREFUSED 127.0.0.1:${port}`,
    )
  })

  it('with no such role, or no such database: what the server says', async () => {
    const server = new URL(await serverUrl())
    const stranger = new URL(server)
    stranger.username = 'nobody_of_this_name'
    stranger.password = SECRET
    const noRole = await refusal(stranger.href)
    expect(noRole.code).toBe('DATABASE_UNREACHABLE')
    expect(noRole.message).toContain('nobody_of_this_name')
    const elsewhere = new URL(server)
    elsewhere.pathname = '/no_such_database'
    const noDatabase = await refusal(elsewhere.href)
    expect(noDatabase).toMatchObject({ code: 'DATABASE_UNREACHABLE' })
    expect(noDatabase.message).toMatch(/database "no_such_database" does not exist/)
  })

  it.each([
    [
      `mysql://ada:${SECRET}@db/shop`,
      /^database \(DATABASE_URL\) is mysql:…; it must be a postgres:\/\/ URL, ':memory:'/,
    ],
    [`ada:${SECRET}@db`, /^database \(DATABASE_URL\) is .*; it must be a postgres:\/\/ URL/],
    [SECRET, /^database \(DATABASE_URL\) is a text without a scheme…; it must be/],
    [`postgres://ada:${SECRET}@db:port/shop`, /^database \(DATABASE_URL\) is not a URL; it must be postgres:\/\/user/],
    ['', /^database \(DATABASE_URL\) is a text without a scheme…; it must be/],
  ])('that no URL names', async (database, message) => {
    const error = await refusal(database)
    expect(error).toMatchObject({ code: 'SETTING_INVALID', message: expect.stringMatching(message) })
  })

  it('that a newer Redrive has migrated: upgrade, nothing was changed', async () => {
    const { url = '', db } = await freshDatabase('server')
    await db.query({
      text: "INSERT INTO redrive.migration (version, name, checksum) VALUES (999, '0999_future.sql', 'x')",
    })
    const error = await refusal(url)
    expect(error).toMatchObject({
      code: 'SCHEMA_NEWER',
      message:
        'The database has migration 0999_future.sql, which this version of Redrive does not know. Upgrade this process.',
    })
  })
})

describe('an embedded database', () => {
  it('that another process has open: who has it, and what to do', async () => {
    const folder = await temporaryFolder()
    await layEmbedded(join(folder, 'data'))
    const program = join(folder, 'holder.mts')
    const library = fileURLToPath(new URL('../../src/index.ts', import.meta.url))
    await writeFile(
      program,
      `import { openRedrive } from ${JSON.stringify(library)}
       await openRedrive({ dataDir: ${JSON.stringify(join(folder, 'data'))}, env: {} })
       console.log('open')
       setInterval(() => {}, 1000)`,
    )
    const root = fileURLToPath(new URL('../..', import.meta.url))
    const holder = spawn(process.execPath, ['--import', 'tsx', program], {
      cwd: root,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    onTestFinished(() => void holder.kill())
    const died = once(holder, 'exit').then(([code]) => {
      throw new Error(`the holder ended with ${code}`)
    })
    await Promise.race([once(holder.stdout, 'data'), died])
    const dataDir = join(folder, 'data')
    const second = openRedrive({ dataDir, env: {}, logger: silent })
    await expect(second).rejects.toMatchObject({
      code: 'LEDGER_LOCKED',
      message: expect.stringContaining(`is open in process ${holder.pid}. Stop that process, choose another folder`),
      details: { pid: holder.pid },
    })
    holder.kill()
    await died.catch(() => {})
  })

  it('in a place that is a file', async () => {
    const place = join(await temporaryFolder(), 'file')
    await writeFile(place, 'not a folder')
    const opening = openRedrive({ dataDir: place, env: {}, logger: silent })
    await expect(opening).rejects.toMatchObject({
      code: 'DATABASE_UNREACHABLE',
      message: expect.stringContaining(`The folder ${place} cannot be made`),
    })
  })
})
