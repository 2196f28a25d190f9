// Every command against a real server, as an operator goes through them: what is printed where, and with which exit code.
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { defineJob } from '../../src/index.js'
import { aDeadLetter, SECRETS } from '../http/support/desk.js'
import { LIBRARIES } from '../support/library.js'
import { openTerminal, type Terminal } from './support/cli.js'

const UUID = /^[0-9a-f-]{36}\n$/
const NOBODY = '00000000-0000-7000-8000-000000000000'

describe.each(LIBRARIES)('$name', { timeout: 60_000 }, ({ kind }) => {
  let terminal: Terminal
  beforeEach(async () => {
    terminal ??= await openTerminal(kind)
  })

  const run = (...args: string[]) => terminal.run(args)
  /** It did what it was asked, and said nothing beside it. */
  const done = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await terminal.run(args)
    expect({ code, err }, `redrive ${args.join(' ')}`).toEqual({ code: 0, err: '' })
    return out
  }
  // biome-ignore lint/suspicious/noExplicitAny: whatever was printed is looked at
  const json = async (...args: string[]): Promise<any> => JSON.parse(await done(...args, '-o', 'json'))

  it('a payload that does not fit is refused with what is wrong with it, said once', async () => {
    const schema = z.object({ source: z.string('must be text'), to: z.string('must be text') })
    const handler = async () => {}
    const worker = terminal.redrive.work([defineJob({ name: 'shrink', queue: 'cli-schema', schema, handler })])
    const { code, out, err } = await terminal.run(['enqueue', 'shrink', '{"source":5}', '--queue', 'cli-schema'])
    await worker.stop()
    const told =
      'The payload of job shrink does not fit its schema: source: must be text; to: must be text [PAYLOAD_INVALID]'
    expect({ code, out, err }).toEqual({ code: 2, out: '', err: `redrive: ${told}\n` })
  })

  it('a job is put in line, found, and cancelled', async () => {
    const queue = 'orders'
    const first = await terminal.run(['enqueue', 'later', '-', '--queue', queue, '--delay', '5m', '--tenant', 'acme'], {
      input: '{"n":1}',
    })
    expect(first).toMatchObject({ code: 0, err: '', out: expect.stringMatching(UUID) })
    const id = first.out.trim()
    const unique = ['enqueue', 'later', '[]', '--queue', queue, '--unique', 'k', '--priority', '9', '--delay', '5m']
    const { id: second } = await json(...unique)
    const again = await run(...unique)
    expect(again).toMatchObject({ code: 0, out: `${second}\n`, err: expect.stringContaining('unique key') })

    const table = await done('jobs', 'ls', '--queue', queue)
    expect(table.split('\n')[0]).toMatch(/^ID +STATE +QUEUE +JOB +TRIES +AGE +TENANT$/)
    expect(table).toMatch(new RegExp(`^${id} +scheduled +orders +later +0 +\\d+[sm] +acme$`, 'm'))
    const limited = await run('jobs', 'ls', '--queue', queue, '--limit', '1', '-o', 'jsonl')
    expect(JSON.parse(limited.out)).toMatchObject({ id: second, state: 'scheduled' })
    expect(limited.err).toContain('--limit shows more')

    const shown = await done('jobs', 'show', id.toUpperCase())
    for (const part of [`Job ${id}, scheduled`, 'later in queue orders', 'tenant', '"n": 1'])
      expect(shown).toContain(part)
    expect(await json('jobs', 'show', id)).toMatchObject({ id, payload: { n: 1 } })

    expect(await done('explain', id)).toMatch(/scheduled[\s\S]*\n$/)
    expect(await json('explain', id)).toMatchObject({ id, state: 'scheduled', next: { what: 'run' } })
    expect(await done('explain', NOBODY)).toContain(`There is no job ${NOBODY}`)

    expect(await done('jobs', 'cancel', id, '--reason', 'no more')).toBe('cancelled\n')
    expect(await run('jobs', 'cancel', id)).toMatchObject({
      code: 5,
      out: '',
      err: expect.stringMatching(/^redrive: Job .* is cancelled.* \[NOT_CANCELLABLE\]; .*jobs show.*\n$/),
    })
    expect((await terminal.audit('job', id))[0]).toMatchObject({ action: 'cancel', actor: 'root', reason: 'no more' })
  })

  it('a dead letter is looked at, noted, retried and closed', async () => {
    const message = 'no mailbox \u001b[2J\u202e日本語'
    const id = await aDeadLetter(terminal, 'mail', { message, password: 'hunter2' })
    const other = await aDeadLetter(terminal, 'mail', { message: 'the disk is full' })
    const listed = await done('dlq', 'ls', '--queue', 'mail')
    expect(listed).toMatch(new RegExp(`^${id} +\\d+[sm] ago +mail +permanent +die-mail +1 +no mailbox +日本語$`, 'm'))
    expect((await json('dlq', 'ls', '--queue', 'mail', '--text', 'disk')).map((one: { id: string }) => one.id)).toEqual(
      [other],
    )
    expect(await json('dlq', 'ls', '--queue', 'mail', '--since', '2h', '--until', '1h')).toEqual([])

    const shown = await done('dlq', 'show', id)
    for (const part of [
      `Dead letter ${id}, pending`,
      'die-mail in queue mail',
      'PermanentError',
      'Attempts',
      'Stack',
    ]) {
      expect(shown).toContain(part)
    }
    expect(shown).toContain('"password": "[redacted]"')
    for (const hidden of ['\u001b', '\u202e', 'hunter2']) expect(shown).not.toContain(hidden)

    expect(await done('dlq', 'note', id, 'waits for the bank', '--assign', 'ada', '--priority', '9')).toBe('noted\n')
    expect(await json('dlq', 'ls', '--assigned-to', 'ada')).toMatchObject([
      { id, notes: 'waits for the bank', priority: 9 },
    ])
    await done('dlq', 'note', id, '', '--assign', '')
    expect((await json('dlq', 'show', id)).notes).toBeUndefined()
    expect((await run('dlq', 'note', id)).code).toBe(2)

    expect(await done('dlq', 'retry', id)).toBe('redriving\n')
    expect(await run('dlq', 'retry', id)).toMatchObject({ code: 5, err: expect.stringContaining('[NOT_PENDING]') })
    expect(await run('jobs', 'retry', id)).toMatchObject({ code: 5 })
    expect(await run('dlq', 'fail', other)).toMatchObject({ code: 2, err: expect.stringContaining('--reason') })
    const closed = await run('dlq', 'fail', other, id, '--reason', 'gone')
    expect(closed).toMatchObject({ code: 5, err: expect.stringContaining('is redriving, not open') })
    expect(closed.out).toMatch(new RegExp(`^${other} +permanently_failed`, 'm'))
    expect(await run('dlq', 'show', NOBODY)).toMatchObject({
      code: 3,
      out: '',
      err: expect.stringContaining('[NOT_FOUND]'),
    })
  })

  it('stats tell of both', async () => {
    await aDeadLetter(terminal, 'stated')
    const [, line] = (await done('stats')).split('\n').filter(text => text.startsWith('stated'))
    expect(line).toMatch(/^stated +1 +1 +0 +0 +0$/)
    expect((await json('stats')).queueStatistics).toContainEqual(
      expect.objectContaining({ queue_name: 'stated', failed_count: 1 }),
    )
  })

  it('a queue is paused, resumed and cleaned', async () => {
    const name = 'of / odd ?names#'
    expect(await done('queue', 'pause', name, '--reason', 'deploy')).toBe('paused\n')
    expect(await done('queue', 'ls')).toMatch(/^of \/ odd \?names# .* paused$/m)
    expect(await done('queue', 'resume', name)).toBe('running\n')
    expect(await run('queue', 'resume', 'nobody')).toMatchObject({ code: 3 })
    const clean = ['queue', 'clean', name, '--status', 'completed', '--older-than', '7d']
    expect(await run(...clean)).toMatchObject({ code: 2, out: '', err: expect.stringContaining('--yes') })
    expect(await done(...clean, '--yes')).toBe('0 removed\n')
    expect(await run('queue', 'clean', name, '--status', 'completed')).toMatchObject({ code: 2 })
    expect(await run('queue', 'clean', name, '--status', 'all', '--older-than', '0')).toMatchObject({ code: 2 })
  })

  it('a cause is taken on and resolved', async () => {
    await aDeadLetter(terminal, 'caused', { message: 'the printer is on fire' })
    const [{ id }] = await json('group', 'ls', '--text', 'printer', '--status', 'open')
    expect(await done('group', 'ls', '--queue', 'caused')).toMatch(new RegExp(`^${id} +open +1 +1 .*on fire$`, 'm'))
    expect(await done('group', 'ack', id, '--note', 'ordered water')).toBe('acknowledged\n')
    expect(await done('group', 'assign', id, 'ada')).toBe('assigned to ada\n')
    const shown = await done('group', 'show', id)
    for (const part of ['on fire', 'acknowledged', 'ordered water', 'ada', 'caused (1)']) expect(shown).toContain(part)
    expect(await done('group', 'resolve', id)).toBe('resolved\n')
    expect(await run('group', 'show', 'nothing')).toMatchObject({ code: 3 })
    expect((await json('dlq', 'ls', '--group', id)).length).toBe(1)
  })

  it('a service is isolated and released, and the doctor tells of it', async () => {
    expect(await done('service', 'isolate', 'bank', '--reason', 'moved')).toBe('isolated\n')
    expect(await done('service', 'ls')).toMatch(/^bank +isolated /m)
    const sick = await run('doctor', '--url', terminal.served.url)
    expect(sick).toMatchObject({ code: 1, err: expect.stringMatching(/^redrive: \d problems? found\n$/) })
    expect(sick.out).toMatch(
      /^PROBLEM {2}breakers: The breaker of bank has been isolated.*\n +→ .*redrive service release bank/m,
    )
    expect(await done('service', 'release', 'bank')).not.toBe('')
  })

  it('recovery runs', async () => {
    expect(await done('recover')).toMatch(/^succeeded in /)
  })

  it('tokens are made, listed and revoked', async () => {
    const made = await run('token', 'create', 'ci', '--scope', 'read,payload')
    expect(made).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^rdr_[\w-]{43}\n$/),
      err: expect.stringContaining('not shown again'),
    })
    const env = { REDRIVE_TOKEN: made.out.trim() }
    expect(await terminal.run(['stats'], { env })).toMatchObject({ code: 0 })
    expect(await terminal.run(['recover'], { env })).toMatchObject({
      code: 4,
      err: expect.stringContaining('[FORBIDDEN]'),
    })
    expect(await run('token', 'create', 'ci', '--scope', 'read')).toMatchObject({
      code: 5,
      err: expect.stringContaining('[TOKEN_EXISTS]'),
    })
    expect(await run('token', 'create', 'ci2', '--scope', 'everything')).toMatchObject({ code: 2 })
    expect(await done('token', 'ls')).toMatch(/^ci +read, payload +\d+s ago +root$/m)
    expect(await done('token', 'revoke', 'ci', '--yes')).toBe('revoked\n')
    expect(await terminal.run(['stats'], { env })).toMatchObject({ code: 4 })
  })

  it('whoever may not is told what to do', async () => {
    const asked = async (token: string | undefined) => {
      const { code, out, err } = await terminal.run(['queue', 'pause', 'x'], { env: { REDRIVE_TOKEN: token } })
      return { code, out, err }
    }
    const unknown = {
      code: 4,
      out: '',
      err: expect.stringMatching(/^redrive: .* \[UNAUTHENTICATED\]; set REDRIVE_TOKEN.*\n$/),
    }
    expect(await asked(undefined)).toEqual(unknown)
    expect(await asked('wrong')).toEqual(unknown)
    expect(await asked(SECRETS.read)).toEqual({ code: 4, out: '', err: expect.stringContaining('[FORBIDDEN]') })
  })
})
