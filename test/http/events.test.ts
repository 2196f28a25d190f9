// The stream of events as one who listens meets it: what happens anywhere in the fleet, once, and no more than they may see.
import { createServer, type RequestListener } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { FleetNews } from '../../src/domain/fleet-event.js'
import type { Backend, HttpOptions } from '../../src/http/index.js'
import { createHttp } from '../../src/http/index.js'
import { openRedrive } from '../../src/index.js'
import { hashOf } from '../../src/operator/tokens.js'
import { manualClock } from '../../src/testing/index.js'
import { beforeFirst } from '../support/databases.js'
import { gate } from '../support/gate.js'
import { LIBRARIES, openLibrary } from '../support/library.js'
import { silent } from '../support/runtime.js'
import { until } from '../support/until.js'
import { aDeadLetter, askOf, type Desk, openDesk, SECRETS, TOKENS } from './support/desk.js'
import { type EventStream, listenTo } from './support/event-stream.js'

const TIMEOUT = { timeout: 180_000 }
/** As often as it may be, so that nobody waits. */
const QUICK = { lookEveryMs: 20, statisticsEveryMs: 20 }

async function listen(
  { http }: Pick<Desk, 'http'>,
  { token = SECRETS.read, lastEventId }: { token?: string; lastEventId?: string } = {},
): Promise<EventStream> {
  const headers = {
    authorization: `Bearer ${token}`,
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  }
  const response = await http.fetch(new Request('http://localhost/api/queue-admin/events', { headers }))
  return listenTo(response)
}

describe.each(LIBRARIES)('$name', ({ kind }) => {
  let desk: Desk
  beforeFirst(async () => {
    desk = await openDesk(kind, { events: { ...QUICK, memory: 1_000 } })
  })

  it('tells of deaths, causes, people and workers, each once', TIMEOUT, async () => {
    const stream = await listen(desk)
    expect(await stream.until(({ event }) => event === 'ready')).toMatchObject({ data: { resumed: false } })
    const id = await aDeadLetter(desk, 'told', { message: 'the total is missing' })
    await desk.ask('POST /queues/told/pause', { body: { reason: 'to look at it' } })
    await desk.ask('POST /queues/told/resume')
    await desk.ask('POST /services/bank/isolate', { body: { reason: 'by hand' } })
    await desk.ask('POST /trigger-recovery')
    const dead = await stream.until(({ event }) => event === 'job.dead')
    expect(dead.data).toMatchObject({
      id,
      queue: 'told',
      kind: 'permanent',
      message: 'the total is missing',
      attempts: 1,
    })
    expect(dead.data.at).toMatch(/^\d{4}-.*Z$/)
    const cause = await stream.until(({ event }) => event === 'group.new')
    expect(cause.data).toMatchObject({ id: dead.data.group, service: 'bank' })
    const paused = await stream.until(({ event }) => event === 'queue.paused')
    expect(paused.data).toMatchObject({ queue: 'told', by: 'root', reason: 'to look at it' })
    await stream.until(({ event }) => event === 'queue.resumed')
    const moved = await stream.until(({ event }) => event === 'breaker.changed')
    expect(moved.data).toMatchObject({ service: 'bank', to: 'isolated' })
    await desk.ask('POST /services/bank/release')
    expect((await stream.until(({ event }) => event === 'recovery.finished')).data).toMatchObject({
      status: 'succeeded',
    })
    await stream.until(({ event }) => event === 'worker.started')
    await stream.until(({ event }) => event === 'worker.ended')
    const counted = await stream.until(
      ({ event, data }) => event === 'statistics' && data.deadLetterQueueSummary.length > 0,
    )
    expect(counted.data.deadLetterQueueSummary).toMatchObject([{ queue_name: 'told', pending_recovery: 1 }])
    await desk.ask(`PATCH /groups/${encodeURIComponent(dead.data.group)}`, { body: { status: 'resolved' } })
    await aDeadLetter(desk, 'told', { message: 'the total is missing' })
    const regressed = await stream.until(({ event }) => event === 'group.regressed')
    expect(regressed.data).toMatchObject({ id: dead.data.group, title: cause.data.title, kind: 'permanent' })
    // Looked at again and again, told once.
    await desk.ask('POST /queues/last/pause')
    await stream.until(({ event, data }) => event === 'queue.paused' && data.queue === 'last')
    const told = stream.told.filter(({ id: numbered }) => numbered !== undefined).map(each => JSON.stringify(each.data))
    expect(new Set(told).size).toBe(told.length)
    expect(stream.told.filter(({ event }) => event === 'job.dead')).toHaveLength(2)
    await stream.close()
  })

  it('hides secrets from whoever may not see payloads', TIMEOUT, async () => {
    const [blind, seeing] = [await listen(desk), await listen(desk, { token: SECRETS['read+payload'] })]
    await aDeadLetter(desk, 'hidden', { message: 'login failed: password=hunter2' })
    const hidden = await blind.until(({ event }) => event === 'job.dead')
    const shown = await seeing.until(({ event }) => event === 'job.dead')
    expect(shown.data.message).toBe('login failed: password=hunter2')
    expect(hidden.data.message).toBe('login failed: password=[redacted]')
    expect(JSON.stringify(blind.told)).not.toContain('hunter2')
  })

  it('goes on where one left off, as far as its memory reaches', TIMEOUT, async () => {
    const http = createHttp(desk.redrive, { tokens: TOKENS, env: {}, events: { ...QUICK, memory: 20 } })
    const pause = async (queue: string) => void (await desk.ask(`POST /queues/${queue}/pause`))
    const is = (queue: string) => (each: { event: string; data: { queue?: string } }) =>
      each.event === 'queue.paused' && each.data.queue === queue
    const first = await listen({ http })
    const { id: beginning } = await first.until(({ event }) => event === 'ready')
    await pause('a')
    const { id: lastEventId } = await first.until(is('a'))
    await first.close()
    const other = await listen({ http })
    for (const queue of ['b', 'c', 'd']) await pause(queue)
    await other.until(is('d'))

    const back = await listen({ http }, { lastEventId: lastEventId as string })
    await back.until(is('d'))
    // Something else may happen meanwhile.
    const paused = back.told.filter(({ event }) => event === 'queue.paused')
    expect(paused.map(({ data }) => data.queue)).toEqual(['b', 'c', 'd'])
    expect(back.told[0]).toMatchObject({ event: 'ready', data: { resumed: true } })

    for (let number = 0; number < 25; number += 1) await pause(`more-${number}`)
    await other.until(is('more-24'))
    for (const strange of [beginning as string, 'x', 'cafe-1', '-1', `${beginning}0`]) {
      const late = await listen({ http }, { lastEventId: strange })
      expect(await late.until(({ event }) => event === 'ready')).toMatchObject({ data: { resumed: false } })
    }
    http.close()
  })
})

it('tells what another process did, on one server', TIMEOUT, async () => {
  const { redrive, url } = await openLibrary('server')
  const other = await openRedrive({ database: url as string, env: {}, logger: silent })
  try {
    const http = createHttp(other, { tokens: TOKENS, env: {}, events: QUICK })
    const stream = await listen({ http })
    await redrive.operator.queues.pause('elsewhere', { actor: 'ada' })
    expect((await stream.until(({ event }) => event === 'queue.paused')).data).toMatchObject({
      queue: 'elsewhere',
      by: 'ada',
    })
    await stream.close()
  } finally {
    await other.close()
  }
})

/** A Redrive of which nothing is known but that something happens, all the time and at length. */
function noisy(bytes: number): Backend {
  let number = 0
  const fleetNews = async (): Promise<FleetNews> => {
    number += 1
    const about = { action: 'noise', targetType: 'job', target: String(number), by: 'x'.repeat(bytes) }
    return {
      now: number,
      events: [{ key: String(number), name: 'desk.changed', at: '2026-01-01T00:00:00.000Z', about }],
    }
  }
  const none = async () => []
  return {
    on: () => () => {},
    operator: { fleetNews, tokens: { stored: none }, queues: { statistics: none }, deadLetters: { statistics: none } },
  } as unknown as Backend
}

it('beats, and leaves nobody behind when it closes', TIMEOUT, async () => {
  const http = createHttp(noisy(1), { tokens: TOKENS, env: {}, events: { heartbeatMs: 20 }, onError: () => {} })
  const stream = await listen({ http })
  await stream.heartbeat()
  await stream.heartbeat()
  http.close()
  await stream.ended
  const late = await askOf(http.fetch, 'GET /events')
  expect(late).toMatchObject({ status: 503, body: { code: 'ALREADY_CLOSED' } })
})

it('ends with its token', TIMEOUT, async () => {
  let stored = [{ name: 'guest', scopes: ['read'], hash: hashOf('guest-secret') }]
  const backend = noisy(1)
  Object.assign(backend.operator.tokens, { stored: async () => stored })
  const clock = manualClock()
  const http = createHttp(backend, { tokens: TOKENS, env: {}, clock })
  const [guest, reader] = [await listen({ http }, { token: 'guest-secret' }), await listen({ http })]
  stored = []
  const beat = reader.heartbeat()
  await clock.advance(15_000)
  await guest.ended
  await beat
  await reader.close()
})

it('has room for so many, in all and of one token', TIMEOUT, async () => {
  const http = createHttp(noisy(1), { tokens: TOKENS, env: {}, events: { mostClients: 3, mostClientsPerToken: 2 } })
  const streams = [await listen({ http }), await listen({ http })]
  const ask = (token: string) => askOf(http.fetch, 'GET /events', { token })
  expect(await ask(SECRETS.read)).toMatchObject({ status: 429, body: { code: 'TOO_MANY_STREAMS', limit: 2 } })
  streams.push(await listen({ http }, { token: SECRETS.operate }))
  const full = await ask(SECRETS.admin)
  expect(full).toMatchObject({ status: 429, body: { code: 'TOO_MANY_STREAMS', limit: 3 } })
  expect(full.headers.get('retry-after')).toBe('10')
  await streams[0]?.close()
  // Whoever asks for the head alone takes no place.
  const url = 'http://localhost/api/queue-admin/events'
  const head = { method: 'HEAD', headers: { authorization: `Bearer ${SECRETS.read}` } }
  for (let times = 0; times < 5; times += 1) expect((await http.fetch(new Request(url, head))).status).toBe(200)
  expect((await ask(SECRETS.read)).status).toBe(200)
  for (const stream of streams) await stream.close()
})

describe('one who stops reading', () => {
  it('is dropped when too much is unread; the others hear on', TIMEOUT, async () => {
    const http = createHttp(noisy(100), { tokens: TOKENS, env: {}, events: { lookEveryMs: 1, bufferBytes: 2_000 } })
    const authorization = `Bearer ${SECRETS.read}`
    const deaf = await http.fetch(
      new Request('http://localhost/api/queue-admin/events', { headers: { authorization } }),
    )
    const stream = await listen({ http }, { token: SECRETS.operate })
    await stream.until(({ data }) => Number(data.target) > 100)
    await expect((deaf.body as ReadableStream<Uint8Array>).getReader().closed).rejects.toThrow('stopped reading')
    http.close()
  })

  it('has its connection cut', TIMEOUT, async () => {
    // The kernel takes some megabytes before anybody notices.
    const http = createHttp(noisy(400_000), { tokens: TOKENS, env: {}, events: { lookEveryMs: 1, memory: 1 } })
    const server = createServer(getRequestListener(http.fetch, { overrideGlobalObjects: false }))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    socket.on('error', () => {})
    socket.write(`GET /api/queue-admin/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${SECRETS.read}\r\n\r\n`)
    await new Promise(resolve => socket.once('data', resolve))
    socket.pause()
    const connections = () => new Promise<number>(resolve => server.getConnections((_, count) => resolve(count)))
    await until('the connection is cut', async () => (await connections()) === 0, 120_000)
    socket.destroy()
    await new Promise(resolve => server.close(resolve))
  })
})

describe('one whose connection is gone holds no place', () => {
  /** A server of its own, and a client of it that asks for the stream. */
  async function served(listener: RequestListener): Promise<Socket> {
    const server = createServer(listener)
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
    onTestFinished(async () => {
      socket.destroy()
      server.closeAllConnections()
      await new Promise(resolve => server.close(resolve))
    })
    socket.write(`GET /api/queue-admin/events HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${SECRETS.read}\r\n\r\n`)
    return socket
  }

  /** Room for one, and a ledger that answers when the test says so. */
  function roomForOne(options: HttpOptions = {}) {
    const [asked, answer] = [gate(), gate()]
    const backend = noisy(1)
    const { fleetNews } = backend.operator
    const slowly = async (since?: number) => {
      asked.open()
      await answer.passed
      return fleetNews(since)
    }
    Object.assign(backend.operator, { fleetNews: slowly })
    const events = { mostClients: 1, heartbeatMs: 20 }
    const http = createHttp(backend, { tokens: TOKENS, env: {}, events, onError: () => {}, ...options })
    onTestFinished(() => http.close())
    const ask = async () => (await askOf(http.fetch, 'GET /events')).status
    return { http, asked, answer, ask, untilRoom: () => until('there is room', async () => (await ask()) === 200) }
  }

  it('when it left before it was answered', TIMEOUT, async () => {
    const { http, asked, answer, untilRoom } = roomForOne()
    const left = gate()
    const answering = getRequestListener(http.fetch, { overrideGlobalObjects: false })
    const socket = await served((incoming, outgoing) => {
      outgoing.once('close', () => left.open())
      void answering(incoming, outgoing)
    })
    await asked.passed
    socket.destroy()
    await left.passed
    answer.open()
    await untilRoom()
  })

  it('when it left later, and its server does not tell: at the next heartbeat', TIMEOUT, async () => {
    const { http, answer, ask, untilRoom } = roomForOne()
    answer.open()
    const socket = await served(async (incoming, outgoing) => {
      outgoing.on('error', () => {}) // goes on writing to nobody
      const headers = { authorization: String(incoming.headers.authorization) }
      const request = new Request(`http://localhost${incoming.url}`, { headers })
      const { body } = await http.fetch(request, { incoming, outgoing })
      for await (const chunk of body as ReadableStream<Uint8Array>) outgoing.write(chunk)
    })
    await new Promise(resolve => socket.once('data', resolve))
    expect(await ask()).toBe(429)
    socket.destroy()
    await untilRoom()
  })

  it('when it was told that it takes too long', TIMEOUT, async () => {
    const { answer, ask, untilRoom } = roomForOne({ timeoutMs: 100 })
    expect(await ask()).toBe(503)
    answer.open()
    await untilRoom()
  })
})
