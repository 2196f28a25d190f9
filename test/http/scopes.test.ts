// Every route × every scope: allowed or refused as the table of routes declares it, and as it is written here once more, so
// that a change of the table is noticed.
import { beforeEach, describe, expect, it } from 'vitest'
import { allRoutes } from '../../src/http/openapi.js'
import type { Route } from '../../src/http/route.js'
import { type Desk, openDesk, SECRETS } from './support/desk.js'

const DECLARED: Readonly<Record<string, Route['scope']>> = {
  'GET /statistics': 'read',
  'GET /dead-letter-queue': 'read',
  'GET /dead-letter-queue/:id': 'read',
  'POST /dead-letter-queue/:id/retry': 'operate',
  'POST /dead-letter-queue/retry': 'operate',
  'POST /dead-letter-queue/:id/mark-failed': 'operate',
  'PUT /dead-letter-queue/:id/notes': 'operate',
  'POST /queues/:queue/pause': 'operate',
  'POST /queues/:queue/resume': 'operate',
  'POST /queues/:queue/clean': 'admin',
  'POST /trigger-recovery': 'operate',
  'GET /recovery-status': 'read',
  'GET /jobs': 'read',
  'POST /jobs': 'operate',
  'GET /jobs/:id': 'read',
  'GET /jobs/:id/explain': 'read',
  'POST /jobs/:id/cancel': 'operate',
  'POST /jobs/:id/retry': 'operate',
  'GET /queues': 'read',
  'GET /queues/:queue/policy': 'read',
  'PUT /queues/:queue/policy': 'admin',
  'DELETE /queues/:queue/policy': 'admin',
  'GET /groups': 'read',
  'GET /groups/:id': 'read',
  'PATCH /groups/:id': 'operate',
  'GET /failure-reasons': 'read',
  'GET /services': 'read',
  'POST /services/:name/isolate': 'operate',
  'POST /services/:name/release': 'operate',
  'GET /triage-rules': 'read',
  'PUT /triage-rules/:name': 'admin',
  'DELETE /triage-rules/:name': 'admin',
  'POST /triage-rules/run': 'operate',
  'GET /rate-limits': 'read',
  'GET /rate-limit-settings': 'read',
  'PUT /rate-limit-settings/:name': 'admin',
  'DELETE /rate-limit-settings/:name': 'admin',
  'GET /workers': 'read',
  'GET /audit': 'read',
  'GET /events': 'read',
  'GET /doctor': 'read',
  'GET /me': 'read',
  'GET /tokens': 'admin',
  'POST /tokens': 'admin',
  'DELETE /tokens/:name': 'admin',
  'GET /openapi.json': 'read',
  'GET //queue-stats': 'read',
  'GET //health': 'read',
  'GET //metrics': 'read',
  'GET //healthz': 'none',
}

/** Who may what: a token with this scope alone. */
const MAY: Readonly<Record<keyof typeof SECRETS, readonly Route['scope'][]>> = {
  read: ['none', 'read'],
  'read+payload': ['none', 'read'],
  payload: ['none'],
  operate: ['none', 'read', 'operate'],
  admin: ['none', 'read', 'operate', 'admin'],
}

const nameOf = ({ method, at, path }: Route) => `${method.toUpperCase()} ${at === 'root' ? '/' : ''}${path}`
const ROUTES = allRoutes('').map(route => ({ name: nameOf(route), route }))
const SENT = { id: '00000000-0000-7000-8000-000000000000', queue: 'nobody', name: 'nobody' }

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory', { throttle: { failures: 1_000_000 } })
})

it('the table declares what is written here', () => {
  expect(Object.fromEntries(ROUTES.map(({ name, route }) => [name, route.scope]))).toEqual(DECLARED)
})

describe.each(ROUTES)('$name', ({ name, route }) => {
  const asked = name.replace(/:(\w+)/g, (_, param: keyof typeof SENT) => SENT[param])
  const body = route.method === 'get' ? {} : { body: { 'not a field': 1 } }

  it.each(Object.entries(SECRETS))('scope %s', async (scope, token) => {
    const { status, body: told } = await desk.ask(asked, { token, ...body })
    const may = MAY[scope as keyof typeof SECRETS].includes(route.scope)
    if (may) expect([401, 403]).not.toContain(status)
    else
      expect({ status, code: told.code, scope: told.scope }).toEqual({
        status: 403,
        code: 'FORBIDDEN',
        scope: route.scope,
      })
    // What was sent fits no route: whoever may was heard, and nothing was changed.
    if (may && route.method !== 'get') expect(status).toBe(400)
  })

  it.each([
    ['no token', null],
    ['a wrong token', 'wrong-secret'],
    ['a token that is cut', 'root-secre'],
    ['a token and more', 'root-secret-and-more'],
  ])('%s', async (_, token) => {
    const { status, headers, body: told } = await desk.ask(asked, { token, ...body })
    if (route.scope === 'none') return expect(status).toBe(200)
    expect({ status, code: told.code }).toEqual({ status: 401, code: 'UNAUTHENTICATED' })
    expect(headers.get('www-authenticate')).toBe('Bearer')
  })
})
