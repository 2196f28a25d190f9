// What goes wrong before or beside the API: an empty desk, bad usage, a wrong address, a token that cannot be. One line each,
// with what to do next, and an exit code to rely on.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { SECRETS } from '../http/support/desk.js'
import { openTerminal, run, type Terminal } from './support/cli.js'

const servers: ReturnType<typeof createServer>[] = []
const folders: string[] = []
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true })
  for (const server of servers) server.closeAllConnections()
  for (const server of servers) server.close()
})

async function listening(answer: RequestListener): Promise<string> {
  const server = createServer(answer)
  servers.push(server)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

describe('an empty desk', { timeout: 60_000 }, () => {
  let terminal: Terminal
  beforeEach(async () => {
    terminal ??= await openTerminal('server')
  })

  it.each(['stats', 'jobs ls', 'dlq ls', 'dlq ls --status all', 'queue ls', 'group ls', 'service ls', 'token ls'])(
    '%s says what to do next, on stderr',
    async list => {
      const { code, out, err } = await terminal.run(list.split(' '))
      expect({ code, out, lines: err.split('\n').length }).toEqual({ code: 0, out: '', lines: 2 })
    },
  )

  it('is nothing to scripts', async () => {
    expect(await terminal.run(['dlq', 'ls', '-o', 'json'])).toEqual({ code: 0, out: '[]\n', err: '' })
    expect(await terminal.run(['jobs', 'ls', '-o', 'jsonl'])).toEqual({ code: 0, out: '', err: '' })
    const { out } = await terminal.run(['stats', '-o', 'json'])
    expect(JSON.parse(out)).toEqual({ queueStatistics: [], deadLetterQueueSummary: [] })
  })

  it('has no open dead letter to retry', async () => {
    expect(await terminal.run(['dlq', 'retry', '--all', '--yes'])).toEqual({
      code: 0,
      out: '0 sent back\n',
      err: 'No open dead letter matches.\n',
    })
  })

  it('takes its token from a file, and its address from an option', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'redrive-cli-'))
    folders.push(folder)
    const file = join(folder, 'token')
    await writeFile(file, `${SECRETS.read}\n`, { mode: 0o600 })
    const env = { REDRIVE_URL: 'http://127.0.0.1:1', REDRIVE_TOKEN: 'wrong' }
    const options = ['--token-file', file, '--url', `${terminal.served.url}/`]
    expect(await run(['stats', ...options], { env })).toMatchObject({ code: 0 })
    expect(await run([...options, 'stats'], { env })).toMatchObject({ code: 0 })
    expect(await run(['stats', '--token-file', `${file}.none`], { env })).toMatchObject({
      code: 2,
      err: expect.stringContaining('cannot be read'),
    })
    await writeFile(file, '\n')
    expect(await run(['stats', '--token-file', file], { env })).toMatchObject({ code: 2 })
  })
})

describe('bad usage is exit code 2 and one line', () => {
  it.each([
    ['stat', "unknown command 'stat' (Did you mean stats?)"],
    ['dlq retri', 'Did you mean retry?'],
    ['stats --ouput json', 'Did you mean --output?'],
    ['stats -o yaml', 'table, json, jsonl'],
    ['stats --width 7', 'from 20 to 9999'],
    ['stats more', 'too many arguments'],
    ['jobs show 7', 'It must be an id'],
    ['jobs ls --state gone', 'Allowed choices are scheduled'],
    ['jobs ls --limit 0', 'from 1 to'],
    ['dlq ls --kind odd', 'Allowed choices are transient'],
    ['dlq ls --since yesterday', 'how long ago'],
    ['dlq retry', 'ids, a filter such as --queue, or --all'],
    ['dlq retry --all --queue mail', 'cannot go together'],
    ['dlq retry 00000000-0000-7000-8000-000000000000 --all', 'cannot go together'],
    ['dlq retry --per-second 0', 'from 1 to'],
    ['enqueue', "missing required argument 'name'"],
    ['enqueue a {b', 'It must be JSON'],
    ['enqueue a 1 --delay 5', '500ms, 30s, 5m, 2h or 7d'],
    ['enqueue a 1 --delay 5s --at 2026-01-01T00:00:00Z', 'cannot go together'],
    ['enqueue a 1 --priority 11', 'from 0 to 10'],
    ['token create x', "'--scope <scopes>' not specified"],
    ['completion tcsh', 'bash, zsh, fish'],
    ['stats --url ftp://x', 'must be a URL such as http://127.0.0.1:3000'],
    ['stats --url http://me:secret@x', 'without user and password'],
  ])('%s', async (line, told) => {
    const { code, out, err } = await run(line.split(' '), { env: { REDRIVE_URL: 'http://127.0.0.1:1' } })
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: expect.stringContaining(told) })
    expect(err).toMatch(/^redrive: [^\n]*\n$/)
    expect(err).not.toContain('secret')
  })

  it('a token with characters that none has is not sent, nor shown', async () => {
    const { code, err } = await run(['stats'], { env: { REDRIVE_TOKEN: 'two words' } })
    expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining('REDRIVE_TOKEN holds characters') })
    expect(err).not.toContain('two words')
  })
})

describe('help', () => {
  it('of the program names every command, and of every command has an example', async () => {
    const { code, out } = await run(['--help'])
    expect(code).toBe(0)
    const names = [...out.slice(out.indexOf('Commands:')).matchAll(/^ {2}([a-z]+)/gm)].map(([, name = '']) => name)
    expect(names).toContain('dlq')
    for (const name of names.filter(one => !['help', 'environment'].includes(one))) {
      const help = await run(['help', name])
      const below = help.out.includes('Commands:') ? ['ls'] : []
      const text = below.length > 0 ? (await run([name, 'ls', '--help'])).out : help.out
      expect(text, name).toContain('Examples:\n  $ ')
    }
  })

  it('is shown, as a mistake, where a command is missing', async () => {
    for (const args of [[], ['dlq']]) {
      expect(await run(args)).toMatchObject({ code: 2, out: '', err: expect.stringContaining('Usage: redrive') })
    }
  })
})

describe('the other side', () => {
  const asked = async (url: string) => run(['stats'], { env: { REDRIVE_URL: url, REDRIVE_TOKEN: 'secret-token' } })

  it('is not there', async () => {
    expect(await asked('http://127.0.0.1:1')).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^redrive: Cannot connect to http:\/\/127\.0\.0\.1:1 \(.+\); is `redrive serve` running.*\n$/,
      ),
    })
  })

  it.each<[string, RequestListener]>([
    [
      'answers with a page',
      (_, response) => response.writeHead(502, { 'content-type': 'text/html' }).end('<h1>\u001b[2J'),
    ],
    ['answers with other JSON', (_, response) => response.writeHead(418).end('{"error":1}')],
    ['answers with no JSON at all', (_, response) => response.end('ok')],
    ['answers with null', (_, response) => response.writeHead(500).end('null')],
  ])('%s', async (_, answer) => {
    expect(await asked(await listening(answer))).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(
        /^redrive: What is at http.* is not the Redrive API: it answered \d+; check REDRIVE_URL.*\n$/,
      ),
    })
  })

  it('sends us elsewhere: the token does not go there', async () => {
    const seen: (string | undefined)[] = []
    const elsewhere = await listening((request, response) => {
      seen.push(request.headers.authorization)
      response.end('{}')
    })
    const url = await listening((_, response) => response.writeHead(302, { location: elsewhere }).end())
    expect(await asked(url)).toMatchObject({ code: 1 })
    expect(seen).toEqual([])
  })

  it('goes away half-way: it is said how far it came', async () => {
    const ids = Array.from({ length: 3 }, (_, index) => `00000000-0000-7000-8000-00000000000${index}`)
    let asked = 0
    const url = await listening((request, response) => {
      request.resume().on('end', () => {
        if (asked++ > 0) return void request.socket.destroy()
        response.end(JSON.stringify({ redriven: [ids[0]], conflicts: [], notOpen: [] }))
      })
    })
    expect(await run(['dlq', 'retry', ...ids, '--per-second', '1', '--url', url])).toEqual({
      code: 1,
      out: '',
      err: expect.stringMatching(/^redrive: Cannot connect to .* \(1 of 3 had been dealt with\); .*\n$/),
    })
  })

  it('hangs up', async () => {
    expect(await asked(await listening(request => request.destroy()))).toMatchObject({ code: 1 })
  })
})
