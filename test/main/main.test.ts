// The program that `npm start` runs, as a person meets it: its lines, its signals, its exit codes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { freshDatabase, serverUrl } from '../support/databases.js'
import { endAll, startProgram } from './program.js'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-main-'))
})
afterAll(async () => {
  endAll()
  await rm(folder, { recursive: true, force: true })
})

/** Without the live states: a retry may become due between the last look and the end. */
const steady = (words: string | undefined) => words?.replace(/ will still run( \([^)]*\))?/, ' will still run')

const SUMMARY = /^\d\d:\d\d:\d\d waiting \d+, active (\d+), retrying \d+, scheduled \d+, completed (\d+), dead \d+/m

describe('on the embedded ledger', () => {
  it('runs, ends cleanly at Ctrl-C, and finds at the next start what it left', { timeout: 180_000 }, async () => {
    const env = { REDRIVE_DATA: join(folder, 'story') }
    const first = startProgram([], env)
    await first.prints(/^found: nothing yet$/m)
    await first.prints(SUMMARY)
    await first.prints(/completed [1-9]/)
    first.signal('SIGINT')
    const end = await first.ended
    expect(end.err).toBe('')
    expect(end.code).toBe(0)
    expect(end.out).toMatch(/^stopping: letting \d+ running jobs? finish \(Ctrl-C again to stop now\)$/m)
    expect(end.out).toMatch(/^this run: [1-9]\d* completed, [1-9]\d* failed and retried, \d+ died$/m)
    const left = /^left: +(.*)$/m.exec(end.out)?.[1]
    expect(left).toMatch(
      /^\d+ jobs? will still run.*; [1-9]\d* completed; [1-9]\d* open dead letters? \(.*1 validation/,
    )

    const second = startProgram(['--demo'], env)
    const [, found] = await second.prints(/^found: (.*)$/m)
    expect(steady(found)).toBe(steady(left))
    await second.prints(/^ +the last recovery run, \d+ s ago, succeeded: rescued 0, promoted \d+, buried 0$/m)

    const intruder = await startProgram([], env).ended
    expect(intruder).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^redrive: The embedded database in .* is open in process \d+\. .* \[LEDGER_LOCKED\]\n$/,
      ),
    })
    second.signal('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
  })

  it('stops at once at a second Ctrl-C, and the next start finds what was running', { timeout: 180_000 }, async () => {
    const env = { REDRIVE_DATA: join(folder, 'forced') }
    const first = startProgram([], env)
    // The first demo job runs into its time limit of 5 s: it is still running when the second summary is printed.
    await first.prints(/\n.*active [1-9].* completed [1-9]/)
    first.signal('SIGINT')
    await first.prints(/^stopping: letting [1-9]/m)
    first.signal('SIGINT') // what npm repeats right away is not a second wish
    const again = setInterval(() => first.signal('SIGINT'), 300)
    const end = await first.ended
    clearInterval(again)
    expect(end.code).toBe(130)
    expect(end.err).toBe('redrive: stopped at once; what was running is rescued when its lease has lapsed\n')

    const second = startProgram([], env)
    await second.prints(/^found: .*[1-9] active/m)
    second.signal('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
  })
})

describe('on a server', () => {
  it('takes the server that DATABASE_URL names, or the one of the PG* variables', { timeout: 180_000 }, async () => {
    await serverUrl()
    const { url } = await freshDatabase('server', { migrated: false })
    const first = startProgram([], { DATABASE_URL: url as string, REDRIVE_SCHEMA: 'demo_here' })
    await first.prints(/^Redrive on a Postgres server, schema demo_here\nfound: nothing yet$/m)
    await first.prints(/completed [1-9]/)
    first.signal('SIGINT')
    const end = await first.ended
    expect(end).toMatchObject({ code: 0, err: '' })

    const { hostname, port, username, password, pathname } = new URL(url as string)
    const variables = {
      PGHOST: decodeURIComponent(hostname),
      PGPORT: port || '5432',
      PGUSER: decodeURIComponent(username) || (process.env.PGUSER ?? process.env.USER ?? ''),
      PGPASSWORD: decodeURIComponent(password) || (process.env.PGPASSWORD ?? ''),
      PGDATABASE: pathname.slice(1),
    }
    const second = startProgram([], { ...variables, REDRIVE_SCHEMA: 'demo_here' })
    const [, found] = await second.prints(/^found: (.*)$/m)
    expect(steady(found)).toBe(steady(/^left: +(.*)$/m.exec(end.out)?.[1]))
    second.signal('SIGINT')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
  })
})

describe('what is wrong is one line on stderr', () => {
  const closed = 'postgres://someone:secret@127.0.0.1:1/there'
  test.each<[string, string[], Record<string, string>, number, RegExp]>([
    ['an argument', ['--bogus'], {}, 2, /^redrive: unknown argument "--bogus"; usage: npm start \[-- --demo\]\n$/],
    [
      'a setting',
      [],
      { MAX_RETRY_ATTEMPTS: 'many' },
      1,
      /^redrive: MAX_RETRY_ATTEMPTS is "many"; .* \[SETTING_INVALID\]\n$/,
    ],
    [
      'a URL',
      [],
      { DATABASE_URL: 'mysql://x:secret@y' },
      1,
      /^redrive: database \(DATABASE_URL\) is mysql:…; .* \[SETTING_INVALID\]\n$/,
    ],
    [
      'no server',
      [],
      { DATABASE_URL: closed },
      1,
      /^redrive: The database at 127\.0\.0\.1:1\/there cannot be used: .* \[DATABASE_UNREACHABLE\]\n$/,
    ],
    [
      'no server there',
      [],
      { PGHOST: '127.0.0.1', PGPORT: '1' },
      1,
      /^redrive: The database at 127\.0\.0\.1:1\/ cannot be used: .* \[DATABASE_UNREACHABLE\]\n$/,
    ],
    [
      'a folder',
      [],
      { REDRIVE_DATA: '/dev/null/x' },
      1,
      /^redrive: The folder \/dev\/null\/x cannot be made: .* \[DATABASE_UNREACHABLE\]\n$/,
    ],
  ])('%s', async (_what, args, env, code, line) => {
    const end = await startProgram(args, { REDRIVE_DATA: join(folder, 'wrong'), ...env }).ended
    expect(end).toEqual({ code, out: '', err: expect.stringMatching(line) })
    expect(end.err).not.toContain('secret')
  })

  it('--help says what there is', async () => {
    const end = await startProgram(['--help'], {}).ended
    expect(end).toMatchObject({ code: 0, err: '' })
    expect(end.out).toMatch(/^usage: npm start \[-- --demo\]\n/)
  })
})
