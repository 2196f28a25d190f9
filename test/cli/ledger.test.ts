// What works on the database itself, before there is a server to ask: migrate, the first token, the doctor.
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { createHttp, serve } from '../../src/http/index.js'
import { openRedrive } from '../../src/index.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { run } from './support/cli.js'

const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
})
async function folder(): Promise<string> {
  const made = await mkdtemp(join(tmpdir(), 'redrive-cli-'))
  folders.push(made)
  return made
}

describe('on the database itself', { timeout: 120_000 }, () => {
  it('a server is migrated, gets its first token, and is looked at', async () => {
    const { url = '' } = await freshDatabase('server', { migrated: false })
    const env = { DATABASE_URL: url }
    expect(await run(['migrate', '--check'], { env })).toMatchObject({
      code: 1,
      out: expect.stringContaining('0001_foundation.sql'),
      err: expect.stringContaining('run `redrive migrate`'),
    })
    expect(await run(['token', 'create', 'first', '--scope', 'admin'], { env })).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/\[SCHEMA_PENDING\]; run `redrive migrate`\n$/),
    })
    const unmigrated = await run(['doctor', '-o', 'json'], { env })
    expect(unmigrated.code).toBe(1)
    expect(JSON.parse(unmigrated.out)).toMatchObject({ well: false })

    const applied = await run(['migrate', '-o', 'json'], { env })
    expect(applied.code).toBe(0)
    expect(JSON.parse(applied.out)).toContain('0001_foundation.sql')
    expect(await run(['migrate'], { env })).toEqual({
      code: 0,
      out: '',
      err: 'Schema redrive of the server is up to date.\n',
    })
    expect(await run(['migrate', '--check'], { env })).toMatchObject({ code: 0 })

    const { code, out } = await run(['token', 'create', 'first', '--scope', 'admin'], { env })
    expect({ code, out }).toEqual({ code: 0, out: expect.stringMatching(/^rdr_[\w-]{43}\n$/) })
    const listed = await run(['token', 'ls', '-o', 'json'], { env })
    expect(JSON.parse(listed.out)).toMatchObject([
      { name: 'first', scopes: ['admin'], createdBy: expect.stringMatching(/^cli:/) },
    ])
    expect(await run(['token', 'revoke', 'nobody', '--yes'], { env })).toMatchObject({ code: 3 })
    expect(await run(['token', 'revoke', 'first', '--yes'], { env })).toMatchObject({ code: 0, out: 'revoked\n' })
    const looked = await run(['doctor'], { env })
    expect(looked.out).toMatch(/^ok {7}migrations: The schema is up to date\.$/m)
  })

  it('an embedded one is made, looked at, and asked through the process that has it open', async () => {
    const data = await folder()
    const env = { REDRIVE_DATA: data }
    expect(await run(['migrate'], { env })).toMatchObject({
      code: 0,
      err: expect.stringContaining(`embedded database in ${data}`),
    })
    const well = await run(['doctor'], { env })
    expect(well).toMatchObject({ code: 0, err: '' })
    expect(well.out.trim().split('\n')).toHaveLength(10)
    for (const line of well.out.trim().split('\n')) expect(line).toMatch(/^ok {7}/)

    const redrive = await openRedrive({ dataDir: data, env: {}, logger: silent })
    const served = await serve(createHttp(redrive, { tokens: 'ops:read:its-secret', env: {} }), { port: 0 })
    try {
      expect(await run(['token', 'ls'], { env })).toMatchObject({
        code: 1,
        err: expect.stringMatching(/\[LEDGER_LOCKED\]; .*REDRIVE_URL and REDRIVE_TOKEN\n$/),
      })
      const asked = { ...env, REDRIVE_URL: served.url, REDRIVE_TOKEN: 'its-secret' }
      expect(await run(['doctor'], { env: asked })).toMatchObject({ code: 0, err: '' })
      expect(await run(['doctor'], { env: { ...asked, REDRIVE_TOKEN: 'wrong' } })).toMatchObject({ code: 4 })
    } finally {
      await served.close()
      await redrive.close()
    }
  })

  it('looking makes nothing where there is nothing', async () => {
    const data = join(await folder(), 'none')
    const { code } = await run(['doctor'], { env: { REDRIVE_DATA: data, REDRIVE_URL: 'http://127.0.0.1:1' } })
    expect(code).toBe(1)
    expect(await run(['migrate', '--check'], { env: { REDRIVE_DATA: data } })).toEqual({
      code: 1,
      out: '',
      err: `redrive: There is no embedded database in ${data} yet; run \`redrive migrate\`\n`,
    })
    await expect(readdir(data)).rejects.toThrow('ENOENT')
  })

  it('a database that is not there is the finding, without its password', async () => {
    const env = { DATABASE_URL: 'postgres://me:hunter2@127.0.0.1:1/nowhere' }
    const { code, out, err } = await run(['doctor'], { env })
    expect(code).toBe(1)
    expect(out).toMatch(
      /^PROBLEM {2}database: The database at 127\.0\.0\.1:1\/nowhere cannot be used: .*\n +→ Check DATABASE_URL/,
    )
    expect(out).toContain('skipped  workers: Not looked at')
    expect(out + err).not.toContain('hunter2')
    expect(await run(['migrate'], { env })).toMatchObject({
      code: 1,
      err: expect.stringContaining('[DATABASE_UNREACHABLE]'),
    })
    expect(await run(['migrate'], { env: { DATABASE_URL: 'mysql://x' } })).toMatchObject({
      code: 2,
      err: expect.stringContaining('[SETTING_INVALID]'),
    })
  })
})
