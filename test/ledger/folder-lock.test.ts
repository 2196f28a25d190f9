// One process at a time on an embedded database: a second one is told who has it and what to do; a lock whose holder
// is gone is taken over, by exactly one of all who find it.
import { type ChildProcess, fork, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { lockFolder } from '../../src/ledger/databases/folder-lock.js'
import { openPGlite } from '../../src/ledger/databases/pglite.js'
import { freshDatabase } from '../support/databases.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-lock-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const leaveLock = (holder: unknown) => writeFile(join(folder, 'lock'), JSON.stringify(holder))
const holderNow = async () => JSON.parse(await readFile(join(folder, 'lock'), 'utf8')) as { pid: number }

/** The number of a process that is no more. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['--eval', ''])
  await once(child, 'exit')
  return child.pid as number
}

const token = (digit: number) => `00000000-0000-4000-8000-00000000000${digit}`

describe('a folder that is open', () => {
  it('is refused to a second opener, with the process that has it and what to do', async () => {
    const first = await freshDatabase('disk')
    await expect(openPGlite(first.folder as string, { schema: 'redrive' })).rejects.toMatchObject({
      code: 'LEDGER_LOCKED',
      message: expect.stringMatching(
        new RegExp(`process ${process.pid}\\b.*Stop that process.*REDRIVE_DATA.*DATABASE_URL`, 's'),
      ),
      details: { folder: first.folder, pid: process.pid },
    })
  })

  it('can be opened again once it is closed, and has what it had', async () => {
    const { folder: place = '', db, close } = await freshDatabase('disk')
    await db.query({ text: "INSERT INTO redrive.queue (name) VALUES ('mail')" })
    await db.close()
    const again = await openPGlite(place, { schema: 'redrive' })
    expect(await again.query({ text: 'SELECT name FROM redrive.queue' })).toEqual([{ name: 'mail' }])
    await again.close()
    await close()
  })

  it('leaves nothing of the lock behind', async () => {
    const lock = await lockFolder(folder)
    expect(await readdir(folder)).toEqual(['lock'])
    await lock.release()
    await lock.release()
    expect(await readdir(folder)).toEqual([])
  })

  it('is not released by one who does not have it any more', async () => {
    const lock = await lockFolder(folder)
    await leaveLock({ pid: process.pid, startedAt: null, token: token(1) })
    await lock.release()
    expect(await readdir(folder)).toEqual(['lock'])
  })
})

describe('a lock left behind', () => {
  it('by a process that is gone is taken over', async () => {
    await leaveLock({ pid: await deadPid(), startedAt: null, token: token(1) })
    await lockFolder(folder)
    expect(await readdir(folder)).toEqual(['lock'])
    expect(await holderNow()).toMatchObject({ pid: process.pid })
    await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'LEDGER_LOCKED' })
  })

  it.skipIf(process.platform !== 'linux')(
    'by a process whose number another one has now is taken over (only Linux shows start times)',
    async () => {
      await leaveLock({ pid: process.pid, startedAt: '1', token: token(1) })
      await lockFolder(folder)
      expect(await holderNow()).toMatchObject({ pid: process.pid, startedAt: expect.not.stringMatching(/^1$/) })
    },
  )

  it.each([
    ['empty', ''],
    ['no JSON', '{"pid": 1, "sta'],
    ['of another make', '{"pid":"1","token":"../../etc/passwd"}'],
    ['null', 'null'],
  ])('that cannot be read (%s) is taken over', async (_what, text) => {
    await writeFile(join(folder, 'lock'), text)
    await lockFolder(folder)
    expect(await holderNow()).toMatchObject({ pid: process.pid })
    expect(await readdir(folder)).toEqual(['lock'])
  })

  it('is kept for a holder of whom nothing but its number is known', async () => {
    await leaveLock({ pid: process.pid, startedAt: null, token: token(1) })
    await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'LEDGER_LOCKED' })
  })
})

describe('twenty processes', () => {
  it('race for one stale lock, again and again: exactly one wins', { timeout: 120_000 }, async () => {
    const program = join(folder, 'racer.mjs')
    await build({
      stdin: { contents: RACER, resolveDir: fileURLToPath(new URL('.', import.meta.url)), loader: 'ts' },
      bundle: true,
      platform: 'node',
      format: 'esm',
      outfile: program,
    })
    const racers = Array.from({ length: 20 }, () => fork(program))
    try {
      await Promise.all(racers.map(answer))
      for (let round = 0; round < 25; round += 1) {
        const place = await mkdtemp(join(folder, 'race-'))
        await writeFile(join(place, 'lock'), JSON.stringify({ pid: await stale, startedAt: null, token: token(1) }))
        const answers = racers.map(answer)
        for (const racer of racers) racer.send({ lock: place })
        const winners = (await Promise.all(answers)).filter(text => text === 'won')
        expect(winners, `round ${round}`).toHaveLength(1)
        expect(
          (await readdir(place)).filter(name => name !== 'lock'),
          'nothing else is left',
        ).toEqual([])
      }
    } finally {
      for (const racer of racers) racer.kill()
    }
  })
})

const stale = deadPid()

const answer = async (racer: ChildProcess) => (await once(racer, 'message'))[0] as string

// Says 'ready'; then, for each folder, 'won' or the code of the refusal. The lock is kept until the end.
const RACER = `
  import { lockFolder } from '../../src/ledger/databases/folder-lock.js'
  process.on('message', ({ lock }) =>
    lockFolder(lock).then(() => process.send('won'), error => process.send(error.code ?? String(error))))
  process.send('ready')`
