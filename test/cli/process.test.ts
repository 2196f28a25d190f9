// The command as a process of its own: exit codes, Ctrl-C, a reader that goes away, a real terminal.
import { execFile } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { promisify } from 'node:util'
import stringWidth from 'string-width'
import { beforeEach, describe, expect, it } from 'vitest'
import { aDeadLetter } from '../http/support/desk.js'
import { openTerminal, start, startOnTerminal, type Terminal } from './support/cli.js'

const hasScript = promisify(execFile)('script', ['--version']).then(
  ({ stdout }) => stdout.includes('util-linux'),
  () => false,
)

let terminal: Terminal
let id: string
beforeEach(async () => {
  if (terminal) return
  terminal = await openTerminal('server')
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

  describe('on a real terminal', () => {
    beforeEach(async ({ skip }) => {
      skip(!(await hasScript), 'needs `script` of util-linux, which makes a terminal')
    })

    it('tables fit, in colours, and without them when NO_COLOR is set', async () => {
      const [coloured, plain] = await Promise.all(
        [{}, { NO_COLOR: '1' }].map(
          env => startOnTerminal(['dlq', 'ls'], 72, { ...terminal.env, TERM: 'xterm', ...env }).ended,
        ),
      )
      expect(coloured?.out).toContain('\u001b[31m')
      expect(plain?.out).not.toContain('\u001b')
      const lines = (plain?.out ?? '').trimEnd().split('\r\n')
      expect(lines).toHaveLength(2)
      expect(lines[1]).toContain(id)
      // Wide characters count as two.
      for (const line of lines) expect(stringWidth(line)).toBeLessThanOrEqual(72)
      expect(lines[1]).toMatch(/郵便.*…$/)
    })

    it('asks before many are sent back, and does what it is told', async () => {
      const asking = (line: string) => startOnTerminal(line.split(' '), 100, { ...terminal.env, TERM: 'xterm' })
      const [no, stopped] = [asking('dlq retry --queue mail'), asking('dlq retry --queue mail')]
      await Promise.all([no.says('[y/N]'), stopped.says('[y/N]')])
      no.types('n\n')
      stopped.types('\u0003')
      expect(await no.ended).toMatchObject({ code: 1, out: expect.stringContaining('Nothing was changed') })
      expect(await stopped.ended).toMatchObject({ code: 130 })
      const yes = asking('dlq retry --queue mail')
      await yes.says('1 open dead letter (queue mail) will be sent back to run. [y/N]')
      yes.types('y\n')
      expect(await yes.ended).toMatchObject({ code: 0, out: expect.stringContaining('1 sent back') })
    })
  })
})
