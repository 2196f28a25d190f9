// Messages of other people's making: what any client may publish, what nobody can read, and what nobody here can run.
import { execFile } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/index.js'
import { rabbitmq } from '../../src/transport/transports/rabbitmq.js'
import { openLibrary } from '../support/library.js'
import { cleanQueues, freshPrefix, rabbitmqUrl, rawRabbit } from '../support/rabbitmq.js'
import { until } from '../support/until.js'

const LONG = 60_000
const run = promisify(execFile)

async function open() {
  const url = await rabbitmqUrl()
  const prefix = freshPrefix()
  const library = await openLibrary('server', { poolSize: 4, transports: { rabbitmq: rabbitmq({ url, prefix }) } })
  const queue = `${prefix}mail`
  cleanQueues(queue)
  const seen: { payload: unknown; id: string; tenant: string | undefined; priority: number }[] = []
  const mail = defineJob({
    name: 'send',
    queue: 'mail',
    transport: 'rabbitmq',
    handler: (payload: unknown, { job }) => {
      seen.push({ payload, id: job.id, tenant: job.tenant, priority: job.priority })
    },
  })
  await library.redrive.work([mail]).ready
  const raw = await rawRabbit(url)
  await raw.channel.assertQueue(queue, { durable: true, arguments: { 'x-max-priority': 10 } })
  return { ...library, url, queue, raw, seen }
}

describe('messages from elsewhere', { timeout: LONG }, () => {
  it('need only a name, in a header or as the type of the message', async () => {
    const { raw, queue, seen } = await open()
    const id = randomUUID()
    await raw.send(queue, '{"n":1}', { headers: { 'redrive-name': 'send' } })
    await raw.send(queue, '{"n":2}', { type: 'send', messageId: id, priority: 9 })
    await raw.send(queue, '{"n":3}', {
      headers: { 'Redrive-Name': 'send', 'redrive-tenant': 'acme' },
      messageId: 'order 7',
    })
    await until('all have run', () => seen.length === 3, LONG)
    const byNumber = seen.toSorted((a, b) => (a.payload as { n: number }).n - (b.payload as { n: number }).n)
    expect(byNumber).toMatchObject([{ priority: 5 }, { id, priority: 9 }, { tenant: 'acme' }])
  })

  it('become dead letters of kind validation when nobody can read them, and block nobody', async () => {
    const { raw, queue, seen, redrive } = await open()
    const headers = { 'redrive-name': 'send' }
    await raw.send(queue, '{"no":"name"}')
    await raw.send(queue, 'not JSON {', { headers })
    await raw.send(queue, Buffer.from([0xff, 0x00, 0xfe]), { headers })
    await raw.send(queue, '{}', { headers: { ...headers, 'redrive-id': 'seven' } })
    await raw.send(queue, '{}', { headers, priority: 77 })
    await raw.send(queue, `"${'x'.repeat(1_100_000)}"`, { headers })
    await raw.send(queue, 'not JSON, and nobody has a handler', { headers: { 'redrive-name': 'unheard of' } })
    await raw.send(queue, '{"fine":true}', { headers })
    await until('the good one has run', () => seen.length === 1, LONG)
    const letters = await until(
      'the others are dead',
      async () => {
        const { items } = await redrive.operator.deadLetters.list()
        return items.length === 7 && items
      },
      LONG,
    )
    expect(new Set(letters.map(({ kind }) => kind))).toEqual(new Set(['validation']))
    expect(letters.find(({ message }) => message.includes('no redrive-name'))?.payload).toEqual({ no: 'name' })
    expect(letters.filter(({ payload }) => typeof (payload as { raw?: unknown }).raw === 'string')).toHaveLength(4)
    await until('nothing is left in the queue', async () => (await raw.depth(queue)) === 0, LONG)
  })

  it('that nobody here can run wait in the ledger for whoever can', async () => {
    const { raw, queue, redrive } = await open()
    const id = randomUUID()
    await raw.send(queue, '{"n":1}', { headers: { 'redrive-name': 'other', 'redrive-id': id } })
    const found = await until('it is in the ledger', () => redrive.operator.jobs.get(id).catch(() => undefined), LONG)
    expect(found).toMatchObject({ state: 'waiting', name: 'other', attempt: 0 })
    const ran = new Promise<unknown>(resolve => {
      redrive.work([defineJob({ name: 'other', queue: 'mail', transport: 'rabbitmq', handler: resolve })])
    })
    expect(await ran).toEqual({ n: 1 })
  })

  it('come from the command line as well', async test => {
    const { url, queue, seen } = await open()
    const to = ['--url', url, '--routing-key', queue, '--persistent', '--content-type', 'application/json']
    const about = ['--header', 'redrive-name: send', '--header', 'redrive-tenant: acme']
    const published = await run('amqp-publish', [...to, ...about, '--body', '{"from":"a shell"}']).then(
      () => true,
      error => (error.code === 'ENOENT' ? false : Promise.reject(error)),
    )
    if (!published) test.skip('needs amqp-publish, which is in the package amqp-tools')
    await until('it has run', () => seen.length === 1, LONG)
    expect(seen).toMatchObject([{ payload: { from: 'a shell' }, tenant: 'acme' }])
  })
})
