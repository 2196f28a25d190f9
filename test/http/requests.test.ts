// What every call has in common: how it is refused, repeated, kept apart from others' changes, and shown.
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { getRequestListener } from '@hono/node-server'
import { beforeEach, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { type Backend, createHttp } from '../../src/http/index.js'
import { REDACTED } from '../../src/policy/redact.js'
import { defineJob } from '../../src/runtime/definition.js'
import { type Answer, type Ask, aDeadLetter, askOf, type Desk, openDesk, SECRETS, TOKENS } from './support/desk.js'

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory')
})

const JSON_TYPE = { 'content-type': 'application/json' }
const NOBODY = '00000000-0000-7000-8000-000000000000'

describe('what is refused, and how', () => {
  it.each([
    ['GET /nothing', {}, 404, 'NOT_FOUND'],
    ['GET //', {}, 404, 'NOT_FOUND'],
    ['GET //api/queue-admin', {}, 404, 'NOT_FOUND'],
    ['POST /statistics', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['OPTIONS /dead-letter-queue', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['DELETE //healthz', {}, 405, 'METHOD_NOT_ALLOWED'],
    ['GET /dead-letter-queue/5', {}, 400, 'REQUEST_INVALID'],
    [`GET /jobs/${NOBODY}`, {}, 404, 'NOT_FOUND'],
    ['GET /groups/none', {}, 404, 'NOT_FOUND'],
    [
      'POST /queues/q/pause',
      { body: 'a=1', headers: { 'content-type': 'application/x-www-form-urlencoded' } },
      415,
      'MEDIA_TYPE_UNSUPPORTED',
    ],
    ['POST /queues/q/pause', { body: '{}', headers: { 'content-type': 'text/plain' } }, 415, 'MEDIA_TYPE_UNSUPPORTED'],
    ['POST /queues/q/pause', { body: '{"reason":', headers: JSON_TYPE }, 400, 'REQUEST_INVALID'],
    ['POST /queues/q/pause', { body: '[1]', headers: JSON_TYPE }, 400, 'REQUEST_INVALID'],
    [
      'POST /queues/q/pause',
      { body: `{"reason":"${'x'.repeat(1_200_000)}"}`, headers: JSON_TYPE },
      413,
      'BODY_TOO_LARGE',
    ],
    ['POST /jobs', { body: { name: 'x', payload: 'x'.repeat(1_048_577) } }, 413, 'PAYLOAD_TOO_LARGE'],
    [
      'POST /jobs',
      { body: `{"name":"x","payload":${'['.repeat(500)}${']'.repeat(500)}}`, headers: JSON_TYPE },
      400,
      'REQUEST_INVALID',
    ],
    ['POST /queues/nobody/clean', { body: { grace: 0, status: 'dead' } }, 404, 'NOT_FOUND'],
    ['POST /trigger-recovery', { headers: { 'idempotency-key': 'ü' } }, 400, 'REQUEST_INVALID'],
    ['PATCH /groups/x', { body: { priority: 1 }, headers: { 'if-match': 'yes' } }, 400, 'REQUEST_INVALID'],
    ['PATCH /groups/x', { body: { priority: 1 }, headers: { 'if-match': '"yes"' } }, 400, 'REQUEST_INVALID'],
  ])('%s', async (what, asked, status, code) => {
    const { body, headers, ...answer } = await desk.ask(what, asked as object)
    expect({ status: answer.status, code: body.code }).toEqual({ status, code })
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(body).toMatchObject({
      status,
      type: `urn:redrive:error:${code}`,
      title: expect.any(String),
      detail: expect.any(String),
    })
    expect(body.requestId).toBe(headers.get('x-request-id'))
    expect(JSON.stringify(body)).not.toMatch(/\.ts:|node_modules|stack/)
  })

  it('405 says what is allowed', async () => {
    expect((await desk.ask('PATCH /queues/q/policy')).headers.get('allow')).toBe('GET, PUT, DELETE')
  })

  it('a field that is not allowed is named, with what it may be', async () => {
    const { body } = await desk.ask('GET /dead-letter-queue?limit=201&kind=odd&statuss=pending&since=yesterday')
    const told = Object.fromEntries(body.issues.map(({ field, message }: Record<string, string>) => [field, message]))
    expect(told.limit).toMatch(/1 to 200/)
    expect(told.kind).toMatch(/"transient"/)
    expect(told.statuss).toMatch(/one of limit, cursor, offset, queue/)
    expect(told.since).toMatch(/RFC 3339/)
  })

  it.each([
    'GET /dead-letter-queue?limit=1&limit=2',
    'GET /statistics?x=1',
    'GET /jobs?cursor=abc',
    'GET /groups?cursor=%00',
  ])('%s is refused', async what => {
    expect((await desk.ask(what)).status).toBe(400)
  })

  it("one list's cursor is no other's", async () => {
    await desk.redrive.enqueueNamed('a', 1)
    await desk.redrive.enqueueNamed('a', 2)
    const { nextCursor } = (await desk.ask('GET /jobs?limit=1')).body
    expect(nextCursor).toMatch(/^[\w-]+$/)
    expect((await desk.ask(`GET /jobs?limit=1&cursor=${nextCursor}`)).status).toBe(200)
    expect((await desk.ask(`GET /workers?cursor=${nextCursor}`)).status).toBe(400)
  })

  it('every answer has the headers that keep browsers from doing more with it, and none for CORS', async () => {
    for (const what of ['GET /statistics', 'GET /nothing', 'GET //healthz']) {
      const { headers } = await desk.ask(what, { headers: { origin: 'https://elsewhere.example' } })
      expect(Object.fromEntries(headers)).toMatchObject({
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'x-frame-options': 'DENY',
      })
      expect([...headers.keys()].filter(name => name.startsWith('access-control'))).toEqual([])
    }
  })

  it('what should not have failed is told to the log, not to the caller', async () => {
    const told: unknown[] = []
    const broken = {
      ...desk.redrive,
      operator: {
        ...desk.redrive.operator,
        queues: { statistics: () => Promise.reject(new Error('boom at /app/x.ts:1')) },
      },
    }
    const http = createHttp(broken as never, {
      tokens: 'root:admin:root-secret',
      env: {},
      onError: error => told.push(error),
    })
    const { status, body } = await askOf(http.fetch, 'GET /queues')
    expect({ status, code: body.code }).toEqual({ status: 500, code: 'INTERNAL' })
    expect(JSON.stringify(body)).not.toContain('boom')
    expect(told).toMatchObject([{ message: 'boom at /app/x.ts:1' }])
  })

  it('a request that takes too long is given up', async () => {
    const slow = {
      ...desk.redrive,
      operator: { ...desk.redrive.operator, queues: { statistics: () => new Promise(() => {}) } },
    }
    const http = createHttp(slow as never, {
      tokens: 'root:admin:root-secret',
      env: {},
      timeoutMs: 100,
      onError: () => {},
    })
    expect(await askOf(http.fetch, 'GET /queues')).toMatchObject({ status: 503, body: { code: 'TAKES_TOO_LONG' } })
  })
})

describe('Idempotency-Key', () => {
  const once = (key: string) => ({ 'idempotency-key': key })

  it('a repeated request is answered again, and nothing is done', async () => {
    const asked = { body: { name: 'mail', queue: 'once', payload: { to: 'a' } }, headers: once('k1') }
    const first = await desk.ask('POST /jobs', asked)
    const again = await desk.ask('POST /jobs', asked)
    expect(first.status).toBe(201)
    expect(again).toMatchObject({ status: 201, body: first.body })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect((await desk.ask('GET /jobs?queue=once')).body.total).toEqual({ value: 1, exact: true })
  })

  it('many at once: one is carried out', async () => {
    const asked = { body: { name: 'mail', queue: 'raced', payload: 1 }, headers: once('k2') }
    const answers = await Promise.all(Array.from({ length: 10 }, () => desk.ask('POST /jobs', asked)))
    expect([201, 409]).toEqual(expect.arrayContaining([...new Set(answers.map(({ status }) => status))]))
    expect((await desk.ask('GET /jobs?queue=raced')).body.total.value).toBe(1)
  })

  it('the same key for something else is refused; of another token it is another key', async () => {
    const asked = (payload: number) => ({ body: { name: 'mail', queue: 'reused', payload }, headers: once('k3') })
    await desk.ask('POST /jobs', asked(1))
    expect(await desk.ask('POST /jobs', asked(2))).toMatchObject({
      status: 422,
      body: { code: 'IDEMPOTENCY_KEY_REUSED' },
    })
    expect(await desk.ask('POST /jobs', { ...asked(2), token: SECRETS.operate })).toMatchObject({ status: 201 })
  })

  it('what failed can be tried again with the same key', async () => {
    const retry = (id: string) =>
      desk.ask(`POST /dead-letter-queue/${id}/mark-failed`, { body: { reason: 'x' }, headers: once('k4') })
    expect((await retry(NOBODY)).status).toBe(404)
    expect((await retry(await aDeadLetter(desk, 'tried'))).status).toBe(200)
  })

  it('of a token of the same name with other scopes it is another key: it may see less', async () => {
    const id = await aDeadLetter(desk, 'rights', { message: 'refused: password=hunter2' })
    const asked = { body: { reason: 'x' }, headers: once('k5'), token: 'ci-secret' }
    const [seeing, blind] = ['operate+payload', 'operate'].map(scopes => {
      const { fetch } = createHttp(desk.redrive, { tokens: `ci:${scopes}:ci-secret`, env: {} })
      return () => askOf(fetch, `POST /dead-letter-queue/${id}/mark-failed`, asked)
    }) as [() => Promise<Answer>, () => Promise<Answer>]
    const first = await seeing()
    expect(first).toMatchObject({ status: 200, body: { message: 'refused: password=hunter2' } })
    const other = await blind()
    expect(other).toMatchObject({ status: 409, body: { code: 'NOT_PENDING' } })
    expect(JSON.stringify(other.body)).not.toContain('hunter2')
    expect(await seeing()).toMatchObject({ status: 200, body: first.body })
  })
})

describe('what is done is answered, whatever cannot be written about it', () => {
  type Failing = { audit?: number; keep?: number }

  /** The same desk, but so many of these writes fail; the ways to ask it, and what it reported. */
  function failing({ audit = 0, keep = 0 }: Failing) {
    const { redrive } = desk
    const { operator } = redrive
    const left = { audit, keep }
    const away = (what: keyof typeof left) => {
      left[what] -= 1
      return left[what] >= 0 ? Promise.reject(new Error(`${what} is away`)) : undefined
    }
    const backend: Backend = {
      on: redrive.on,
      operator: {
        ...operator,
        audit: { ...operator.audit, write: entry => away('audit') ?? operator.audit.write(entry) },
        requests: { ...operator.requests, keep: (...kept) => away('keep') ?? operator.requests.keep(...kept) },
      },
      enqueueNamed: (...asked) => redrive.enqueueNamed(...asked),
      recover: () => redrive.recover(),
      recoveryStatus: () => redrive.recoveryStatus(),
      health: () => redrive.health(),
    }
    const reported: unknown[] = []
    const onError = (error: unknown, about: object) => reported.push({ error, ...about })
    const { fetch } = createHttp(backend, { tokens: TOKENS, env: {}, onError })
    return { reported, ask: (what: string, asked?: Ask) => askOf(fetch, what, asked) }
  }
  const aJob = (queue: string) => ({
    body: { name: 'mail', queue, payload: 1 },
    headers: { 'idempotency-key': `done-${queue}` },
  })
  const jobsOf = async (queue: string) => (await desk.ask(`GET /jobs?queue=${queue}`)).body.total.value

  it('a job whose audit row cannot be written is enqueued, once; the error is reported', async () => {
    const { ask, reported } = failing({ audit: 2 })
    const first = await ask('POST /jobs', aJob('unaudited'))
    expect(first.status).toBe(201)
    expect(reported).toEqual([
      {
        error: new Error('audit is away'),
        requestId: first.headers.get('x-request-id'),
        method: 'POST',
        path: '/api/queue-admin/jobs',
      },
    ])
    const again = await ask('POST /jobs', aJob('unaudited'))
    expect(again).toMatchObject({ status: 201, body: first.body })
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    expect(await jobsOf('unaudited')).toBe(1)
    expect(await desk.audit('job', first.body.id)).toEqual([])
  })

  it('an audit row that could not be written at first is written', async () => {
    const { ask, reported } = failing({ audit: 1 })
    const { body } = await ask('POST /jobs', aJob('audited'))
    expect(await desk.audit('job', body.id)).toMatchObject([{ actor: 'root', action: 'enqueue' }])
    expect(reported).toEqual([])
  })

  it.each(['POST /trigger-recovery', 'POST /triage-rules/run'])('%s is answered as well', async what => {
    const { ask, reported } = failing({ audit: 2 })
    expect((await ask(what, { body: {} })).status).toBe(200)
    expect(reported).toMatchObject([{ error: { message: 'audit is away' } }])
  })

  it('an answer that cannot be kept is given all the same, and nothing is done twice', async () => {
    const { ask } = failing({ keep: 2 })
    expect((await ask('POST /jobs', aJob('unkept'))).status).toBe(201)
    expect(await ask('POST /jobs', aJob('unkept'))).toMatchObject({ status: 409, body: { code: 'REQUEST_UNDER_WAY' } })
    expect(await jobsOf('unkept')).toBe(1)
  })

  it('an answer that could not be kept at first is kept', async () => {
    const { ask } = failing({ keep: 1 })
    const first = await ask('POST /jobs', aJob('kept'))
    expect(await ask('POST /jobs', aJob('kept'))).toMatchObject({ status: 201, body: first.body })
    expect(await jobsOf('kept')).toBe(1)
  })

  it('what fails before it is done gives its key back, as ever', async () => {
    const { ask } = failing({ keep: 2 })
    const asked = { body: { reason: 'x' }, headers: { 'idempotency-key': 'not-done' } }
    for (let times = 0; times < 2; times += 1) {
      const refused = await ask(`POST /dead-letter-queue/${NOBODY}/mark-failed`, asked)
      expect(refused).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
    }
  })
})

describe('versions', () => {
  it('a policy is changed only as it was seen', async () => {
    const seen = await desk.ask('GET /queues/versioned/policy')
    expect(seen.headers.get('etag')).toBe('"0"')
    const put = (attempts: number, etag: string) =>
      desk.ask('PUT /queues/versioned/policy', { body: { attempts, reason: 'tuned' }, headers: { 'if-match': etag } })
    const first = await put(7, '"0"')
    expect(first).toMatchObject({ status: 200, body: { policy: { attempts: 7 }, sources: { attempts: 'queue' } } })
    expect(await put(8, '"0"')).toMatchObject({ status: 412, body: { code: 'VERSION_CONFLICT' } })
    expect((await put(9, first.headers.get('etag') as string)).body.policy.attempts).toBe(9)
    expect((await desk.ask('DELETE /queues/versioned/policy')).body.policy.attempts).toBe(3)
    expect((await desk.audit('queue', 'versioned')).map(({ actor, action }) => `${actor}: ${action}`)).toEqual([
      'root: remove policy',
      'root: set policy',
      'root: set policy',
    ])
  })

  it('notes are changed only as they were seen', async () => {
    const id = await aDeadLetter(desk, 'annotated')
    const etag = (await desk.ask(`GET /dead-letter-queue/${id}`)).headers.get('etag') as string
    const put = (notes: string, tag: string) =>
      desk.ask(`PUT /dead-letter-queue/${id}/notes`, { body: { notes }, headers: { 'if-match': tag } })
    const first = await put('mine', etag)
    expect(first).toMatchObject({ status: 200, body: { notes: 'mine' } })
    expect(await put('yours', etag)).toMatchObject({ status: 412, body: { code: 'VERSION_CONFLICT' } })
    expect((await desk.ask(`GET /dead-letter-queue/${id}`)).body.notes).toBe('mine')
    expect(await put('both', first.headers.get('etag') as string)).toMatchObject({ status: 200 })
    expect(await desk.audit('dead_letter', id)).toHaveLength(2)
  })

  it('a group is changed only as it was seen', async () => {
    const id = await aDeadLetter(desk, 'grouped', { message: 'group me' })
    const { fingerprint } = (await desk.ask(`GET /dead-letter-queue/${id}`)).body
    const path = `/groups/${encodeURIComponent(fingerprint)}`
    const etag = (await desk.ask(`GET ${path}`)).headers.get('etag') as string
    const patch = () => desk.ask(`PATCH ${path}`, { body: { status: 'acknowledged' }, headers: { 'if-match': etag } })
    expect(await patch()).toMatchObject({ status: 200, body: { status: 'acknowledged' } })
    expect(await patch()).toMatchObject({ status: 412, body: { code: 'VERSION_CONFLICT' } })
  })
})

it('whoever may not see payloads sees no secrets, anywhere', async () => {
  const secret = 'hunter2-hunter2'
  const jwt = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl'
  const id = await aDeadLetter(desk, 'secretive', {
    message: `refused: password=${secret} ${jwt}`,
    password: secret,
    to: 'bob',
  })
  const { fingerprint } = (await desk.ask(`GET /dead-letter-queue/${id}`, { token: SECRETS['read+payload'] })).body
  const paths = [
    `/dead-letter-queue/${id}`,
    '/dead-letter-queue?queue=secretive',
    `/jobs/${id}`,
    '/audit',
    '/failure-reasons',
    '/groups',
    `/groups/${encodeURIComponent(fingerprint)}`,
  ]
  await desk.ask(`PUT /dead-letter-queue/${id}/notes`, { body: { notes: `token: ${secret}` } })
  for (const path of paths) {
    const text = JSON.stringify((await desk.ask(`GET ${path}`, { token: SECRETS.read })).body)
    expect(text, path).not.toContain(secret)
    expect(text, path).not.toContain(jwt)
  }
  expect((await desk.ask(`GET /dead-letter-queue/${id}`, { token: SECRETS.admin })).body.payload).toMatchObject({
    password: REDACTED,
    to: 'bob',
  })
  const seen = (await desk.ask(`GET /dead-letter-queue/${id}`, { token: SECRETS['read+payload'] })).body
  expect(seen.payload.password).toBe(secret)
  expect(seen.message).toContain(jwt)
})

describe('mounted under a path of your own', () => {
  it('answers there and nowhere else', async () => {
    const http = createHttp(desk.redrive, { tokens: 'root:admin:root-secret', env: {}, basePath: '/ops/queues' })
    const server = createServer(getRequestListener(http.fetch))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    try {
      expect((await askOf(fetch, 'GET //ops/queues/api/queue-admin/me', {}, origin)).body).toEqual({
        name: 'root',
        scopes: ['admin'],
      })
      expect((await askOf(fetch, 'GET //ops/queues/healthz', { token: null }, origin)).status).toBe(200)
      expect((await askOf(fetch, 'GET //healthz', {}, origin)).status).toBe(404)
      expect((await askOf(fetch, 'GET /me', {}, origin)).status).toBe(404)
      const { body } = await askOf(fetch, 'GET //ops/queues/api/queue-admin/openapi.json', {}, origin)
      expect(body.servers).toEqual([{ url: '/ops/queues' }])
    } finally {
      await new Promise(resolve => server.close(resolve))
    }
  })

  it.each(['ops', '/ops/', '/a b', '/:x', '/*'])('%s is refused', basePath => {
    expect(() => createHttp(desk.redrive, { basePath, env: {} })).toThrow(/basePath/)
  })
})

it('jobs: enqueued by name, listed by state, queue, name and tenant, cancelled, retried', async () => {
  const { body } = await desk.ask('POST /jobs', {
    body: { name: 'mail', queue: 'post', payload: { a: 1 }, tenant: 't1', delayMs: 60_000 },
  })
  const list = async (query: string) =>
    (await desk.ask(`GET /jobs?${query}`)).body.items.map(({ id }: { id: string }) => id)
  for (const query of ['queue=post', 'queue=post&state=scheduled', 'name=mail&queue=post', 'tenant=t1'])
    expect(await list(query)).toEqual([body.id])
  expect(await list('queue=post&state=waiting')).toEqual([])
  expect((await desk.ask(`GET /jobs/${body.id}`)).body).toMatchObject({
    state: 'scheduled',
    payload: { a: 1 },
    attempts: [],
  })
  expect(await desk.ask(`POST /jobs/${body.id}/retry`)).toMatchObject({ status: 409, body: { code: 'NOT_PENDING' } })
  expect((await desk.ask(`POST /jobs/${body.id}/cancel`)).body).toEqual({ id: body.id, result: 'cancelled' })
  expect(await desk.ask(`POST /jobs/${body.id}/cancel`)).toMatchObject({
    status: 409,
    body: { code: 'NOT_CANCELLABLE' },
  })
  expect(await list('queue=post&state=cancelled')).toEqual([body.id])
  const dead = await aDeadLetter(desk, 'lazarus')
  expect(await desk.ask(`POST /jobs/${dead}/retry`)).toMatchObject({ status: 200, body: { status: 'redriving' } })
})

it('a payload that does not fit the schema of a job that is worked on here is refused, and nothing is kept', async () => {
  const schema = z.object({ source: z.string() })
  const worker = desk.redrive.work([defineJob({ name: 'shrink', queue: 'pictures', schema, handler: async () => {} })])
  const asked = (payload: unknown) => desk.ask('POST /jobs', { body: { name: 'shrink', queue: 'pictures', payload } })
  const refused = await asked({ source: 5 })
  expect(refused).toMatchObject({ status: 400, body: { code: 'PAYLOAD_INVALID' } })
  expect(refused.body.detail).toContain('source')
  expect(refused.body.issues).toEqual([{ in: 'payload', field: 'source', message: expect.any(String) }])
  const { body } = await asked({ source: 'a.png' })
  const { items } = (await desk.ask('GET /jobs?queue=pictures')).body
  expect(items.map(({ id }: { id: string }) => id)).toEqual([body.id])
  await worker.stop()
})

it('services: isolated and released', async () => {
  expect(await desk.ask('POST /services/mailer/isolate', { body: { reason: 'maintenance' } })).toMatchObject({
    status: 200,
    body: { service: 'mailer', state: 'isolated', changedBy: 'root', reason: 'maintenance' },
  })
  expect((await desk.ask('GET /services')).body.items).toContainEqual(
    expect.objectContaining({ service: 'mailer', state: 'isolated' }),
  )
  expect((await desk.ask('POST /services/mailer/release')).body).toMatchObject({ state: 'closed' })
})
