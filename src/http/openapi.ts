// The OpenAPI document, from the table of routes and its shapes. It cannot say anything else than what is checked.
import { createRoute, OpenAPIHono, z } from '@hono/zod-openapi'
import type { ErrorCode } from '../domain/errors.js'
import { STATUS_OF } from './problem.js'
import { type Route, route } from './route.js'
import { BASE, ROUTES } from './routes.js'
import { problem } from './schemas/common.js'

const EVERYWHERE: readonly ErrorCode[] = [
  'REQUEST_INVALID',
  'THROTTLED',
  'INTERNAL',
  'TAKES_TOO_LONG',
  'STATEMENT_TIMEOUT',
  'DATABASE_UNREACHABLE',
]
const WITH_TOKEN: readonly ErrorCode[] = ['UNAUTHENTICATED', 'FORBIDDEN']
const WITH_BODY: readonly ErrorCode[] = ['BODY_TOO_LARGE', 'MEDIA_TYPE_UNSUPPORTED']
const WITH_KEY: readonly ErrorCode[] = ['IDEMPOTENCY_KEY_REUSED', 'REQUEST_UNDER_WAY']

/** The table, and the document about it. */
export function allRoutes(basePath: string): readonly Route[] {
  const self = route('get', '/openapi.json', {
    scope: 'read',
    tag: 'desk',
    summary: 'This document',
    response: z.looseObject({ openapi: z.string() }),
    verbatim: true,
    handle: async function getOpenapi() {
      document ??= documentOf(all, basePath)
      return document
    },
  })
  const all = [...ROUTES, self]
  let document: { openapi: string } | undefined
  return all
}

export const pathOf = ({ at, path }: Pick<Route, 'at' | 'path'>): string => (at === 'base' ? BASE + path : path)

/** What a route may answer when it does not do what it was asked. */
export function errorsOf(route: Route): ErrorCode[] {
  return [
    ...EVERYWHERE,
    ...route.errors,
    ...(route.scope === 'none' ? [] : WITH_TOKEN),
    ...(route.body ? WITH_BODY : []),
    ...(takesKey(route) ? WITH_KEY : []),
  ]
}

/** Where the answer holds a secret it is not kept, and so it cannot be given again. */
export const takesKey = (route: Route): boolean => route.method === 'post' && !route.verbatim

function documentOf(routes: readonly Route[], basePath: string): { openapi: string } {
  const app = new OpenAPIHono()
  app.openAPIRegistry.registerComponent('securitySchemes', 'token', { type: 'http', scheme: 'bearer' })
  for (const each of routes) app.openAPIRegistry.registerPath(described(each))
  return app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Redrive', version: '1', description: 'What a person may do about jobs.' },
    ...(basePath !== '' && { servers: [{ url: basePath }] }),
  })
}

function described(route: Route) {
  const headers = z.object({
    ...(takesKey(route) && { 'Idempotency-Key': z.string().max(255).optional() }),
    ...(route.versioned && route.method !== 'get' && { 'If-Match': z.string().optional() }),
  })
  return createRoute({
    method: route.method,
    path: pathOf(route).replace(/:(\w+)/g, '{$1}'),
    operationId: route.handle.name,
    tags: [route.tag],
    summary: route.summary,
    ...(route.scope !== 'none' && { description: `Scope: \`${route.scope}\`.`, security: [{ token: [] }] }),
    request: {
      ...(route.params && { params: route.params as z.ZodObject }),
      ...(route.query && { query: route.query as z.ZodObject }),
      ...(Object.keys(headers.shape).length > 0 && { headers }),
      ...(route.body && {
        body: { required: route.bodyRequired, content: { 'application/json': { schema: route.body } } },
      }),
    },
    responses: { ...problemsOf(route), ...answersOf(route) },
  })
}

function problemsOf(route: Route) {
  const byStatus = new Map<number, ErrorCode[]>()
  for (const code of errorsOf(route)) {
    const status = STATUS_OF[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      { description: [...new Set(codes)].join(', '), content: { 'application/problem+json': { schema: problem } } },
    ]),
  )
}

function answersOf(route: Route) {
  return Object.fromEntries(
    route.statuses.map(status => [
      status,
      {
        description: status < 400 ? 'Done' : 'As asked',
        content: {
          [route.produces]: { schema: route.response },
          ...(status >= 400 && { 'application/problem+json': { schema: problem } }),
        },
      },
    ]),
  )
}
