// The command as a process of its own: exit codes, Ctrl-C, a reader that goes away, a real terminal.
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { beforeEach, describe, expect, it } from 'vitest'
import { aDeadLetter } from '../http/support/desk.js'
import { openTerminal, start, type Terminal } from './support/cli.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const run = promisify(execFile)

let terminal: Terminal
let id: string
beforeEach(async () => {
  if (terminal) return
  terminal = await openTerminal('memory')
  id = await aDeadLetter(terminal, 'mail', { message: '郵便箱がありません: ada@example.org は知られていません' })
}, 60_000)

describe('as a process', { timeout: 120_000 }, () => {
  it('prints data, and ends with the code for how it went', async () => {
    const ends = await Promise.all([
      start(['stats', '-o', 'jsonl'], terminal.env).ended,
      start(['dlq', 'show', '00000000-0000-7000-8000-000000000000'], terminal.env).ended,
      start(['dlq', 'ls'], { ...terminal.env, REDRIVE_TOKEN: 'wrong' }).ended,
      start(['dlq', 'ls', '--kidn', 'x'], terminal.env).ended,
      start(['--version']).ended,
    ])
    expect(ends.map(({ code }) => code)).toEqual([0, 3, 4, 2, 0])
    const [stats, missing, , , version] = ends
    expect(JSON.parse(stats?.out ?? '')).toMatchObject({ queueStatistics: [{ queue_name: 'mail' }] })
    expect(missing).toMatchObject({ out: '', err: expect.stringMatching(/^redrive: [^\n]+\n$/) })
    expect(version?.out).toMatch(/^\d+\.\d+\.\d+\n$/)
  })

  it('ends quietly when nobody reads any more', async () => {
    const reading = start(['dlq', 'ls', '-o', 'jsonl'], terminal.env)
    reading.closeOutput()
    expect(await reading.ended).toEqual({ code: 0, out: '', err: '' })
  })

  it('ends with 130 at Ctrl-C while it waits for an answer', async () => {
    let asked: () => void = () => {}
    const waiting = new Promise<void>(resolve => {
      asked = resolve
    })
    // Never answers.
    const silent = createServer(() => asked())
    await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
    try {
      const { port } = silent.address() as AddressInfo
      const asking = start(['stats', '--url', `http://127.0.0.1:${port}`])
      await waiting
      asking.signal('SIGINT')
      expect(await asking.ended).toEqual({ code: 130, out: '', err: 'redrive: interrupted\n' })
    } finally {
      silent.closeAllConnections()
      silent.close()
    }
  })

  it('fits a real terminal, in colours, and without them when NO_COLOR is set', async ({ skip }) => {
    const command = `stty cols 72; "${process.execPath}" --import tsx src/cli/main.ts dlq ls`
    const onTerminal = (env: Record<string, string>) =>
      run('script', ['-qec', command, '/dev/null'], {
        cwd: ROOT,
        env: { PATH: process.env.PATH, ...terminal.env, ...env },
      })
    const hasScript = await run('script', ['--version']).then(
      ({ stdout }) => stdout.includes('util-linux'),
      () => false,
    )
    skip(!hasScript, 'needs `script` of util-linux, which gives it a terminal')
    const { stdout: coloured } = await onTerminal({ TERM: 'xterm' })
    expect(coloured).toContain('\u001b[31m')
    const { stdout: plain } = await onTerminal({ TERM: 'xterm', NO_COLOR: '1' })
    expect(plain).not.toContain('\u001b')
    const lines = plain.trimEnd().split('\r\n')
    expect(lines).toHaveLength(2)
    expect(lines[1]).toContain(id)
    // Wide characters count as two.
    expect(lines[1]).toMatch(/郵便.*…$/)
  })
})
