// The OpenAPI document is one, names every route there is, and every answer is what it says: checked by other code than wrote
// it, against the document as it is served.
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { beforeEach, describe, expect, it } from 'vitest'
import { ERROR_CODES } from '../../src/domain/errors.js'
import { allRoutes, pathOf } from '../../src/http/openapi.js'
import { STATUS_OF } from '../../src/http/problem.js'
import { type Answer, type Ask, aDeadLetter, type Desk, openDesk, SECRETS } from './support/desk.js'

let desk: Desk
// biome-ignore lint/suspicious/noExplicitAny: a document of any shape, until it is checked
let document: any
let ajv: Ajv2020
beforeEach(async () => {
  if (desk) return
  desk = await openDesk('memory')
  document = (await desk.ask('GET /openapi.json')).body
  ajv = new Ajv2020({ strict: false })
  ;(addFormats as unknown as (ajv: Ajv2020) => void)(ajv)
  ajv.addSchema(document, 'api')
})

const pointer = (...parts: readonly string[]) =>
  `api#/${parts.map(part => part.replaceAll('~', '~0').replaceAll('/', '~1')).join('/')}`

/** The document's own word on an answer of this route. */
function schemaOf(path: string, method: string, status: number, type: string): ValidateFunction | undefined {
  const said = document.paths[path]?.[method]?.responses?.[status]?.content?.[type]
  if (!said) return undefined
  return ajv.compile({
    $ref: encodeURI(pointer('paths', path, method, 'responses', String(status), 'content', type, 'schema')),
  })
}

const seen = new Set<string>()

function checkAnswer(route: { path: string; method: string }, { status, headers, body }: Answer): void {
  const path = route.path.replace(/:(\w+)/g, '{$1}')
  const [type = ''] = (headers.get('content-type') ?? '').split(';')
  const fits = schemaOf(path, route.method, status, type)
  expect(fits, `${route.method} ${path} answers ${status} ${type}: ${JSON.stringify(body).slice(0, 300)}`).toBeDefined()
  if (fits && !fits(body)) expect(fits.errors, `${route.method} ${path} ${status} ${JSON.stringify(body)}`).toEqual([])
  if (status < 400) seen.add(`${route.method} ${path}`)
}

it('is valid', async () => {
  const result = await new Validator().validate(structuredClone(document))
  expect(result.errors ?? []).toEqual([])
  expect(result.valid).toBe(true)
})

it('has every route, with a name of its own, and no other', () => {
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods as object).map(method => `${method} ${path}`),
  )
  const served = allRoutes('').map(route => `${route.method} ${pathOf(route).replace(/:(\w+)/g, '{$1}')}`)
  expect(documented.sort()).toEqual(served.sort())
  const ids = Object.values(document.paths).flatMap(methods =>
    Object.values(methods as Record<string, { operationId: string }>).map(({ operationId }) => operationId),
  )
  expect(ids.every(id => /^[a-z]\w+$/.test(id))).toBe(true)
  expect(new Set(ids).size).toBe(ids.length)
})

it('an answer that it does not describe is noticed', () => {
  const alive = schemaOf('/healthz', 'get', 200, 'application/json')
  expect([alive?.({ status: 'ok' }), alive?.({ status: 'no' }), alive?.({ status: 'ok', more: 1 })]).toEqual([
    true,
    false,
    false,
  ])
  expect(schemaOf('/api/queue-admin/statistics', 'get', 200, 'application/json')?.({ queueStatistics: [{}] })).toBe(
    false,
  )
})

it('every code has an HTTP status', () => {
  expect(Object.keys(STATUS_OF).sort()).toEqual(Object.keys(ERROR_CODES).sort())
})

describe('every route answers as it says', () => {
  it('when it does what it was asked', { timeout: 180_000 }, async () => {
    const id = await aDeadLetter(desk, 'described', { message: 'described' })
    const second = await aDeadLetter(desk, 'described', { message: 'described again' })
    const third = await aDeadLetter(desk, 'described', { message: 'once more' })
    const { fingerprint } = (await desk.ask(`GET /dead-letter-queue/${id}`)).body
    const job = await desk.ask('POST /jobs', {
      body: { name: 'later', queue: 'described', payload: [1], delayMs: 1_000 },
    })
    const params: Record<string, string> = { id, queue: 'described', name: 'described-service' }
    const asked: Record<string, Ask & { params?: Record<string, string>; query?: string }> = {
      'post /dead-letter-queue/:id/mark-failed': { params: { id: second }, body: { reason: 'no' } },
      'post /dead-letter-queue/retry': { body: { ids: [second, id] } },
      'put /dead-letter-queue/:id/notes': { body: { notes: 'n', assignedTo: 'a', priority: 1 } },
      'post /queues/:queue/clean': { body: { grace: 0, status: 'completed' } },
      'get /jobs': { query: '?limit=1' },
      'post /jobs': { body: { name: 'later', queue: 'described', payload: {}, priority: 9, delayMs: 1_000 } },
      'post /jobs/:id/cancel': { params: { id: job.body.id } },
      'post /jobs/:id/retry': { params: { id: third } },
      'put /queues/:queue/policy': {
        body: { attempts: 4, backoff: { type: 'fixed', delayMs: 5 }, retryKinds: { lost: false } },
      },
      'get /groups/:id': { params: { id: fingerprint } },
      'patch /groups/:id': {
        params: { id: fingerprint },
        body: { status: 'resolved', notes: 'fixed', assignee: 'ada' },
      },
      'put /triage-rules/:name': {
        body: { match: { kind: 'permanent' }, action: { type: 'assign', to: 'ada' }, enabled: false },
      },
      'post /triage-rules/run': { body: { dryRun: true } },
      'put /rate-limit-settings/:name': { body: { limit: 5, intervalMs: 1_000 } },
      'get /workers': { query: '?ended=true' },
      'post /tokens': { body: { name: 'described-service', scopes: ['read'] } },
    }
    for (const route of allRoutes('')) {
      const { params: own, query = '', ...ask } = asked[`${route.method} ${route.path}`] ?? {}
      const path = pathOf(route).replace(/:(\w+)/g, (_, name) => encodeURIComponent(own?.[name] ?? params[name] ?? ''))
      const answer = await desk.ask(`${route.method.toUpperCase()} /${path}${query}`, ask)
      expect(answer.status, `${route.method} ${path} ${JSON.stringify(answer.body)}`).toBeLessThan(300)
      checkAnswer({ method: route.method, path: pathOf(route) }, answer)
      const shown =
        route.method === 'get' ? await desk.ask(`GET /${path}${query}`, { token: SECRETS['read+payload'] }) : undefined
      if (shown && shown.status < 400) checkAnswer({ method: route.method, path: pathOf(route) }, shown)
    }
    expect(seen.size).toBe(allRoutes('').length)
  })

  it('and when it does not', { timeout: 180_000 }, async () => {
    const nobody: Record<string, string> = {
      id: '00000000-0000-7000-8000-000000000000',
      queue: 'nobody',
      name: 'nobody',
    }
    for (const route of allRoutes('')) {
      const path = pathOf(route).replace(/:(\w+)/g, (_, name) => nobody[name] ?? '')
      const what = `${route.method.toUpperCase()} /${path}`
      const asks: Ask[] = [
        { token: null },
        { token: SECRETS.payload },
        { body: { odd: 1 } },
        { body: '{', headers: { 'content-type': 'text/html' } },
      ]
      for (const ask of route.method === 'get' ? asks.slice(0, 2) : asks) {
        checkAnswer({ method: route.method, path: pathOf(route) }, await desk.ask(what, ask))
      }
      if (route.method === 'get') {
        checkAnswer({ method: route.method, path: pathOf(route) }, await desk.ask(`${what}?odd=1`))
      }
    }
  })
})
