// The page of the command line is true: what it shows is what the program prints, in a scene with a time of its own, and it
// lists every command and option there is. Ids differ from run to run, and so do versions of Postgres: they are evened out.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Host } from '../../src/cli/cli.js'
import { createProgram } from '../../src/cli/program.js'
import { systemClock } from '../../src/domain/clock.js'
import { createHttp, type Served, serve } from '../../src/http/index.js'
import { defineJob, immediate, PermanentError, TransientError } from '../../src/index.js'
import { run } from '../cli/support/cli.js'
import { openLibrary } from '../support/library.js'
import { blocksOf, codeIn, readPage, tableBelow } from './pages.js'

const PAGES = ['docs/reference/cli.md', 'docs/operations/doctor.md'].map(readPage)
const [reference] = PAGES
const shown = PAGES.flatMap(blocksOf).filter(({ language, mark }) => language === 'console' && mark === 'run')

describe('what is shown is what is printed', () => {
  let served: Served
  let letter = ''
  let nowMs = Date.parse('2026-11-15T03:00:00Z')
  const pass = (ms: number) => {
    nowMs += ms
  }

  const sendMail = defineJob({
    name: 'send-mail',
    queue: 'mail',
    service: 'smtp',
    retry: { attempts: 3, backoff: immediate(), jitter: false, minMs: 0 },
    handler: async ({ to }: { to: string; template: string; password?: string }) => {
      pass(1_200)
      if (to === 'ada@example.org') throw withStack(new TransientError('connect ECONNREFUSED 10.0.0.7:25'))
      if (to === 'bob@example.org') throw withStack(new PermanentError(`no mailbox for ${to}`))
      return 'sent'
    },
  })

  /** A night on call: two mails died, one queue is paused, another has nobody to work on it, a service is isolated. */
  beforeAll(async () => {
    const { redrive, next } = await openLibrary('memory', {
      now: () => new Date(nowMs),
      recoveryIntervalMs: 86_400_000,
    })
    const worker = redrive.work([sendMail], { concurrency: 1 })
    const sent = async (to: string, end: 'job.dead' | 'job.completed') => {
      const ended = next(end)
      const { id } = await redrive.enqueue(
        sendMail,
        { to, template: 'welcome', password: 'hunter2' },
        { tenant: 'acme' },
      )
      await ended
      return id
    }
    letter = await sent('ada@example.org', 'job.dead')
    pass(60_000)
    await sent('bob@example.org', 'job.dead')
    await sent('eve@example.org', 'job.completed')
    await worker.stop()
    const desk = redrive.operator
    await redrive.enqueueNamed('monthly', {}, { queue: 'reports' })
    await redrive.enqueueNamed('nightly', {}, { queue: 'imports' })
    await redrive.enqueueNamed('nightly', {}, { queue: 'imports', delayMs: 3_600_000 })
    await desk.queues.pause('imports', { actor: 'ada' })
    await desk.services.isolate('smtp', { actor: 'ada', reason: 'the mail server is being moved' })
    await redrive.recover()
    pass(120_000)
    served = await serve(createHttp(redrive, { tokens: 'ops:operate:its-secret', env: {} }), { port: 0 })
  }, 60_000)
  afterAll(() => served?.close())

  it('shows at least what people ask for first', () => {
    const commands = shown.map(({ code }) => code.split('\n')[0])
    for (const command of ['stats', 'dlq ls', 'dlq show', 'doctor']) {
      expect(
        commands.some(line => line?.startsWith(`$ redrive ${command}`)),
        command,
      ).toBe(true)
    }
  })

  it.each(shown.map(({ page, line, code }) => ({ place: `${page}:${line}`, code })))('$place', async ({ code }) => {
    const [first = '', ...printed] = code.split('\n')
    const args = first
      .replace(/^\$ redrive /, '')
      .replace(UUID, letter)
      .split(' ')
    const { out, err } = await run(args, {
      env: { REDRIVE_URL: served.url, REDRIVE_TOKEN: 'its-secret' },
      clock: { ...systemClock, now: () => nowMs },
    })
    expect(evened(out + err)).toBe(evened(`${printed.join('\n')}\n`))
  })
})

const UUID = /\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b/g

const evened = (text: string): string =>
  text
    .replace(UUID, '<id>')
    .replace(/Postgres \d+(?:\.\d+)?/, 'Postgres <version>')
    .replace(/\d+ dead rows? beside \d+ live ones?/, '<rows>')

function withStack<Failure extends Error>(error: Failure): Failure {
  error.stack = `${error.name}: ${error.message}\n    at send (src/mail.ts:41:11)\n    at handler (src/jobs.ts:12:5)`
  return error
}

describe('the page lists', () => {
  const host = { env: {}, stdout: { write: () => {} }, stderr: { write: () => {} }, version: '0' } as unknown as Host
  const program = createProgram(host)
  const leaves = (function below(command: typeof program, path: string): { path: string; options: string[] }[] {
    const options = command.options.map(({ long }) => long ?? '')
    return command.commands.length === 0
      ? [{ path, options }]
      : command.commands.flatMap(one => below(one, path === '' ? one.name() : `${path} ${one.name()}`))
  })(program, '')

  it('every command, and no other', () => {
    const listed = tableBelow(reference as (typeof PAGES)[number], '## Commands').flatMap(([cell = '']) =>
      codeIn(cell).map(code => code.replace(/ [<[].*$/, '')),
    )
    expect(listed.sort()).toEqual(leaves.map(({ path }) => path).sort())
  })

  it('every option of each command', () => {
    for (const [cell = '', , options = ''] of tableBelow(reference as (typeof PAGES)[number], '## Commands')) {
      const paths = codeIn(cell).map(code => code.replace(/ [<[].*$/, ''))
      const there = new Set(leaves.filter(({ path }) => paths.includes(path)).flatMap(leaf => leaf.options))
      const named = codeIn(options).map(code => code.split(' ')[0])
      expect(named.sort(), paths.join(', ')).toEqual([...there].sort())
    }
  })

  it('every option that all commands have', () => {
    const named = tableBelow(reference as (typeof PAGES)[number], '## Options of all commands').flatMap(([cell = '']) =>
      codeIn(cell),
    )
    const there = program.options.flatMap(({ short, long }) => [short, long].filter(flag => flag !== undefined))
    expect(named.map(code => code.split(' ')[0]).sort()).toEqual([...there, '-h', '--help'].sort())
  })
})
