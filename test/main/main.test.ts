// The program that `npm start` runs, as a person meets it: its lines, its token, its signals, its exit codes.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest'
import { freshDatabase, layEmbedded, serverUrl } from '../support/databases.js'
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
const SERVES = /^now: {3}serves (http:\/\/127\.0\.0\.1:\d+)/m
const TRY = /^try: {3}curl -H 'authorization: (Bearer [^']+)' (\S+)$/m

describe('on the embedded ledger', () => {
  it('serves, shows a token once, ends cleanly, and finds what it left', { timeout: 180_000 }, async () => {
    const env = { REDRIVE_DATA: join(folder, 'story') }
    const first = startProgram(['--demo'], env)
    await first.prints(/^found: nothing yet$/m)
    const [, authorization = '', url = ''] = await first.prints(TRY)
    expect(first.out).toMatch(SERVES)
    expect(first.out).toContain(`token: ${authorization.slice('Bearer '.length)} (`)
    await first.prints(SUMMARY)
    await first.prints(/completed [1-9].*dead [1-9]/)
    const answer = await fetch(url, { headers: { authorization } })
    expect(answer.status).toBe(200)
    const { queueStatistics } = (await answer.json()) as { queueStatistics: { queue_name: string }[] }
    expect(queueStatistics.map(({ queue_name }) => queue_name)).toContain('demo.mail')
    expect((await fetch(url)).status).toBe(401)
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

    const second = startProgram([], env)
    const [, found] = await second.prints(/^found: (.*)$/m)
    expect(steady(found)).toBe(steady(left))
    await second.prints(/^ +the last recovery run, \d+ s ago, succeeded: rescued 0, promoted \d+, buried 0$/m)
    const [, placeholder, again = ''] = await second.prints(TRY)
    expect(placeholder).toBe('Bearer <your token>')
    expect(second.out).not.toContain('token: ')
    expect((await fetch(again, { headers: { authorization } })).status).toBe(200)

    const intruder = await startProgram([], env).ended
    expect(intruder).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^redrive: The embedded database in .* is open in process \d+\. .* \[LEDGER_LOCKED\].*\n$/,
      ),
    })
    second.signal('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
  })

  it('stops at once at a second Ctrl-C, and the next start finds what was running', { timeout: 180_000 }, async () => {
    const env = { REDRIVE_DATA: join(folder, 'forced'), REDRIVE_TOKENS: 'me:read:not-to-be-shown' }
    await layEmbedded(env.REDRIVE_DATA)
    const first = startProgram(['--demo'], env)
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
    // With tokens configured, none is made and none is shown.
    expect(end.out).not.toContain('token: ')
    expect(end.out).not.toContain('not-to-be-shown')

    const second = startProgram([], env)
    await second.prints(/^found: .*[1-9] active/m)
    await second.prints(TRY)
    second.signal('SIGTERM')
    expect(await second.ended).toMatchObject({ code: 0 })
  })
})

describe('on a server', () => {
  it('takes the server that DATABASE_URL names, or the one of the PG* variables', { timeout: 180_000 }, async () => {
    await serverUrl()
    const { url } = await freshDatabase('server', { migrated: false })
    const first = startProgram(['--demo'], { DATABASE_URL: url as string, REDRIVE_SCHEMA: 'demo_here' })
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
    await second.prints(TRY)
    second.signal('SIGINT')
    expect(await second.ended).toMatchObject({ code: 0, err: '' })
  })
})

describe('what is wrong is one line on stderr', () => {
  const closed = 'postgres://someone:secret@127.0.0.1:1/there'
  test.each<[string, string[], Record<string, string>, number, RegExp]>([
    ['an argument', ['--bogus'], {}, 2, /^redrive: unknown option '--bogus'\n$/],
    ['a module', ['nowhere.ts'], {}, 2, /^redrive: There is no module nowhere\.ts; .*\n$/],
    [
      'a setting',
      [],
      { MAX_RETRY_ATTEMPTS: 'many' },
      2,
      /^redrive: MAX_RETRY_ATTEMPTS is "many"; .* \[SETTING_INVALID\]\n$/,
    ],
    ['a port', [], { PORT: '70000' }, 2, /^redrive: PORT is "70000"; .* \[SETTING_INVALID\]\n$/],
    [
      'a token',
      [],
      { REDRIVE_TOKENS: 'me:all:a-secret' },
      2,
      /^redrive: A scope of Token 1 of REDRIVE_TOKENS .* \[SETTING_INVALID\]\n$/,
    ],
    [
      'a URL',
      [],
      { DATABASE_URL: 'mysql://x:secret@y' },
      2,
      /^redrive: database \(DATABASE_URL\) is mysql:…; .* \[SETTING_INVALID\]\n$/,
    ],
    [
      'no server',
      [],
      { DATABASE_URL: closed },
      1,
      /^redrive: The database at 127\.0\.0\.1:1\/there cannot be used: .* \[DATABASE_UNREACHABLE\].*\n$/,
    ],
    [
      'a folder',
      [],
      { REDRIVE_DATA: '/dev/null/x' },
      1,
      /^redrive: The folder \/dev\/null\/x cannot be made: .* \[DATABASE_UNREACHABLE\].*\n$/,
    ],
  ])('%s', { timeout: 60_000 }, async (_what, args, env, code, line) => {
    const end = await startProgram(args, { REDRIVE_DATA: join(folder, 'wrong'), ...env }).ended
    expect(end).toEqual({ code, out: '', err: expect.stringMatching(line) })
    expect(end.err).not.toContain('secret')
  })

  it('--help says what there is', { timeout: 60_000 }, async () => {
    const end = await startProgram(['--help'], {}).ended
    expect(end).toMatchObject({ code: 0, err: '' })
    expect(end.out).toMatch(/^Usage: redrive serve \[options\] \[modules\.\.\.\]\n/)
  })
})
