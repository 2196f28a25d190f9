// `dlq retry` for many: what will be sent back is counted first, that very set is sent back, and however it ends, it says how
// far it came (pitfalls 6, 7 and 21).
import { beforeEach, describe, expect, it } from 'vitest'
import { serve } from '../../src/http/index.js'
import { aDeadLetter, mortal } from '../http/support/desk.js'
import { openTerminal, type Terminal } from './support/cli.js'

let terminal: Terminal
beforeEach(async () => {
  terminal ??= await openTerminal('server')
}, 60_000)

/** Ids, the oldest death first. */
async function letters(queue: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let index = 0; index < count; index++) ids.push(await aDeadLetter(terminal, queue, { message: `no ${index}` }))
  return ids
}

const statusOf = async (id: string): Promise<string> => (await terminal.ask(`GET /dead-letter-queue/${id}`)).body.status

describe('dlq retry', { timeout: 60_000 }, () => {
  it('counts first, asks, and then sends back what it counted', async () => {
    const ids = await letters('counted', 3)
    const filter = ['dlq', 'retry', '--queue', 'counted', '--kind', 'permanent']
    expect(await terminal.run([...filter, '--dry-run'])).toEqual({
      code: 0,
      out: '3 open dead letters would be sent back\n',
      err: '',
    })
    const refused = await terminal.run(filter)
    expect(refused).toMatchObject({ code: 2, out: '' })
    expect(refused.err).toMatch(/^redrive: 3 open dead letters \(queue counted, kind permanent\).*--yes.*\n$/)
    expect(await Promise.all(ids.map(statusOf))).toEqual(['pending', 'pending', 'pending'])

    const { code, out } = await terminal.run([...filter, '--yes', '--reason', 'fixed', '-o', 'json'])
    expect({ code, ...JSON.parse(out) }).toEqual({ code: 0, redriven: expect.any(Array), conflicts: [], notOpen: [] })
    expect(JSON.parse(out).redriven.toSorted()).toEqual(ids.toSorted())
    expect(await Promise.all(ids.map(statusOf))).toEqual(['redriving', 'redriving', 'redriving'])
    const [entry] = await terminal.audit('dead_letter', '3 by their ids')
    expect(entry).toMatchObject({ action: 'retry many', actor: 'root', reason: 'fixed' })
  })

  it('pitfall 7: what dies while others are sent back does not join them', async () => {
    const ids = await letters('growing', 2)
    let late = ''
    const { url, close } = await serve(
      {
        close: () => {},
        fetch: async (request, env) => {
          if (request.url.endsWith('/dead-letter-queue/retry')) late = await aDeadLetter(terminal, 'growing')
          return terminal.http.fetch(request, env)
        },
      },
      { port: 0 },
    )
    try {
      const { out } = await terminal.run(['dlq', 'retry', '--queue', 'growing', '--yes', '-o', 'json', '--url', url])
      expect(JSON.parse(out).redriven.toSorted()).toEqual(ids.toSorted())
      expect(await statusOf(late)).toBe('pending')
    } finally {
      await close()
    }
  })

  it('leaves alone what was closed, and what another filter means', async () => {
    const [closed = '', open = ''] = await letters('mixed', 2)
    await terminal.run(['dlq', 'fail', closed, '--reason', 'no'])
    const [other = ''] = await letters('mixed-other', 1)
    expect(await terminal.run(['dlq', 'retry', '--queue', 'mixed', '--yes'])).toMatchObject({
      code: 0,
      out: '1 sent back\n',
    })
    expect([await statusOf(closed), await statusOf(open), await statusOf(other)]).toEqual([
      'permanently_failed',
      'redriving',
      'pending',
    ])
  })

  it('takes several ids, and says which of them could not be', async () => {
    const [first = '', second = ''] = await letters('named', 2)
    const nobody = '00000000-0000-7000-8000-000000000000'
    await terminal.run(['dlq', 'retry', first])
    const { code, out, err } = await terminal.run(['dlq', 'retry', first, second, nobody])
    expect({ code, err }).toEqual({ code: 5, err: 'redrive: 2 of 3 could not be sent back\n' })
    expect(out.split('\n')[0]).toBe('1 sent back')
    for (const id of [first, nobody]) expect(out).toContain(`${id} was left: it is not open`)
    expect(await statusOf(second)).toBe('redriving')
  })

  it('leaves one whose unique key a live job has', async () => {
    const job = mortal('unique')
    const worker = terminal.redrive.work([job])
    const died = terminal.next('job.dead', event => event.job.queue === 'unique')
    await terminal.redrive.enqueue(job, { message: 'no' }, { uniqueKey: 'one' })
    const { id } = (await died).job
    await worker.stop()
    await terminal.redrive.enqueue(job, { message: 'no' }, { uniqueKey: 'one', delayMs: 3_600_000 })
    const many = await terminal.run(['dlq', 'retry', '--queue', 'unique', '--yes'])
    expect(many).toMatchObject({
      code: 5,
      out: expect.stringContaining(`${id} was left: a live job holds its unique key`),
    })
    expect(await terminal.run(['dlq', 'retry', id])).toMatchObject({
      code: 5,
      err: expect.stringContaining('[UNIQUE_KEY_TAKEN]'),
    })
  })

  it('by group takes in what was merged into it', async () => {
    const [one = '', other = ''] = [
      await aDeadLetter(terminal, 'merged', { message: 'the printer burns' }),
      await aDeadLetter(terminal, 'merged', { message: 'no paper left' }),
    ]
    const [into, from] = await Promise.all(
      [one, other].map(async id => (await terminal.ask(`GET /dead-letter-queue/${id}`)).body.fingerprint as string),
    )
    await terminal.redrive.operator.groups.merge(into ?? '', [from ?? ''])
    const { out } = await terminal.run(['dlq', 'retry', '--group', into ?? '', '--yes', '-o', 'json'])
    expect(JSON.parse(out).redriven.toSorted()).toEqual([one, other].toSorted())
  })

  it('stops between two batches at Ctrl-C, and says how far it came', async () => {
    const ids = await letters('stopped', 3)
    const pressed = new AbortController()
    const { code, out, err } = await terminal.run(
      ['dlq', 'retry', '--queue', 'stopped', '--per-second', '1', '--yes'],
      {
        columns: 100,
        interrupt: () => pressed.signal,
        // As soon as the bar shows the first batch.
        onError: text => text.includes('sent back:') && pressed.abort(),
      },
    )
    expect(code).toBe(130)
    expect(out).toBe('1 sent back\n')
    expect(err).toContain('[========                ] sent back: 1 of 3')
    expect(err).toContain('redrive: interrupted: 1 of 3 were dealt with, 2 are as they were\n')
    expect(await Promise.all(ids.map(statusOf))).toEqual(['redriving', 'pending', 'pending'])
  })

  it('paces itself where it is told to', async () => {
    await letters('paced', 2)
    const paced = await terminal.run(['dlq', 'retry', '--queue', 'paced', '--per-second', '100', '--yes'])
    expect(paced).toMatchObject({ code: 0, out: '2 sent back\n' })
  })
})
