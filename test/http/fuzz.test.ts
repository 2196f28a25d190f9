// Whatever is sent, only documented answers come back, never a 5xx; and what was refused changed nothing.
import type { z } from '@hono/zod-openapi'
import fc from 'fast-check'
import { beforeEach, describe, expect, it } from 'vitest'
import { allRoutes, errorsOf, pathOf } from '../../src/http/openapi.js'
import { STATUS_OF } from '../../src/http/problem.js'
import type { Route } from '../../src/http/route.js'
import type { Database } from '../../src/ledger/database.js'
import { LIBRARIES } from '../support/library.js'
import { aDeadLetter, type Desk, openDesk } from './support/desk.js'

// Making a token or a run many times over finds nothing new and takes long.
const ROUTES = allRoutes('').filter(({ path }) => path !== '/trigger-recovery')

const HOSTILE = [
  "'; DROP TABLE redrive.job; --",
  "' OR '1'='1",
  '$1',
  '<script>alert(1)</script>',
  '"><img src=x onerror=alert(1)>',
  '{{7*7}}',
  '#{7*7}',
  '../../etc/passwd',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfff',
  '\u202e\u0000',
  '💥'.repeat(60),
  'ä'.repeat(5_000),
  'x'.repeat(70_000),
  '%00',
  '%',
  '\n\r\t',
  ' ',
  '',
  '-1',
  '0',
  '201',
  '1e9',
  '0x10',
  'NaN',
  '9'.repeat(400),
  'true',
  'null',
  '[]',
  '__proto__',
  'constructor',
  '0000-01-01T00:00:00Z',
  '9999-12-31T23:59:59-12:00',
  '2026-13-45T99:99:99Z',
  '00000000-0000-7000-8000-000000000000',
  'ffffffff-ffff-ffff-ffff-ffffffffffff',
  'MTpqb2JzOng',
  Buffer.from('1:dead-letters:999999999999999999.999999999999999999').toString('base64url'),
  Buffer.from('1:jobs:x').toString('base64url'),
  Buffer.from("1:groups-lastSeen:1.'\0").toString('base64url'),
  Buffer.from('1:audit:999999999999999999').toString('base64url'),
  Buffer.from('1:workers:-1').toString('base64url'),
]

/** What may well be right, so that more than the first check is reached. */
const LIKELY = [
  'fuzzed',
  'die-fuzzed',
  'bank',
  'dead',
  'pending',
  'open',
  'transient',
  '1',
  '200',
  'true',
  'lastSeen',
  'ada',
  '2026-01-01T00:00:00Z',
  '2099-01-01T00:00:00+02:00',
]
const LIKELY_DATA = [
  ...LIKELY,
  0,
  1,
  5,
  10,
  1_000,
  true,
  null,
  ['read'],
  { type: 'fixed', delayMs: 5 },
  { lost: false },
  { any: ['data'] },
]

const hostile = fc.oneof(
  fc.constantFrom(...HOSTILE),
  fc.string({ unit: 'binary', maxLength: 50 }),
  fc.string({ maxLength: 300 }),
)
const anything = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...LIKELY_DATA) },
  { weight: 2, arbitrary: hostile },
  fc.constantFrom(null, true, -1, 0, 1e308, 2 ** 53, 1.5, [], {}, [[[[]]]], { __proto__: null, toString: 1 }),
  fc.double(),
  fc.jsonValue({ maxDepth: 4 }),
)

const keysOf = (shape: z.ZodType | undefined): string[] =>
  Object.keys((shape as { shape?: object } | undefined)?.shape ?? {})

/** Bodies that are right, of which a field or two is then replaced. */
const RIGHT: Readonly<Record<string, object>> = {
  '/jobs': { name: 'x', payload: 1 },
  '/dead-letter-queue/retry': { ids: ['00000000-0000-7000-8000-000000000000'] },
  '/dead-letter-queue/:id/mark-failed': { reason: 'because' },
  '/dead-letter-queue/:id/notes': { notes: 'x' },
  '/queues/:queue/clean': { grace: 1_000_000, status: 'completed' },
  '/queues/:queue/policy': { attempts: 3 },
  '/groups/:id': { priority: 1 },
  '/tokens': { name: 'x', scopes: ['read'] },
  '/triage-rules/:name': { match: { kind: 'lost' }, action: { type: 'assign', to: 'ada' }, enabled: false },
  '/triage-rules/run': { dryRun: true },
  '/rate-limit-settings/:name': { limit: 5, intervalMs: 1_000 },
}

const bodyOf = (route: Route) => {
  const fields = (maxKeys: number) =>
    fc.dictionary(fc.constantFrom(...keysOf(route.body), 'odd', '__proto__'), anything, { maxKeys })
  const right = RIGHT[route.path] ?? {}
  return fc.oneof(
    {
      weight: 4,
      arbitrary: fc
        .dictionary(fc.constantFrom(...keysOf(route.body), 'reason'), anything, { maxKeys: 2 })
        .map(some => ({ ...right, ...some })),
    },
    { weight: 2, arbitrary: fields(8) },
    { weight: 1, arbitrary: anything },
  )
}
const queryOf = (route: Route) => fc.dictionary(fc.constantFrom(...keysOf(route.query), 'odd'), hostile, { maxKeys: 4 })

/** The dead letter that is there, and its group. */
const ITS_ID = '<its id>'
const ITS_GROUP = '<its group>'

const requestOf = (route: Route) =>
  fc.record({
    // By its place: a failure prints what was generated, and a route's shapes are long.
    at: fc.constant(ROUTES.indexOf(route)),
    params: fc.array(fc.oneof(hostile, fc.constantFrom(ITS_ID, ITS_GROUP, 'fuzzed')), { minLength: 2, maxLength: 2 }),
    query: fc.oneof({ weight: 3, arbitrary: queryOf(route) }, { weight: 1, arbitrary: fc.constant({}) }),
    body: bodyOf(route),
    headers: fc.record(
      {
        'idempotency-key': fc.stringMatching(/^[ -~]{0,300}$/),
        'if-match': fc.stringMatching(/^[ -~]{0,50}$/),
        'content-type': fc.constantFrom(
          'application/json',
          'application/json; charset=utf-8',
          'text/html',
          'application/problem+json',
        ),
      },
      { requiredKeys: [] },
    ),
  })

const request = fc.constantFrom(...ROUTES).chain(requestOf)
type Generated = typeof request extends fc.Arbitrary<infer Value> ? Value : never

const routeOf = ({ at }: Generated) => ROUTES[at] as Route

function sent(
  { at, params, query, body, headers }: Generated,
  found: ReadonlyMap<string, string>,
): { what: string; lost: boolean; ask: object } {
  const route = ROUTES[at] as Route
  let index = 0
  const segment = () => {
    const param = params[index++] ?? ''
    return encodeURIComponent((found.get(param) ?? param).toWellFormed())
  }
  const path = pathOf(route).replace(/:\w+/g, segment)
  const search = new URLSearchParams(query as Record<string, string>)
  // A segment that is empty, or dots, makes it another path.
  const lost = path.split('/').some((part, at) => at > 0 && (part === '' || part === '.' || part === '..'))
  const what = `${route.method.toUpperCase()} /${path}${search.size > 0 ? `?${search}` : ''}`
  return {
    what,
    lost,
    ask:
      route.method === 'get'
        ? { headers }
        : { body: JSON.stringify(body) ?? 'null', headers: { 'content-type': 'application/json', ...headers } },
  }
}

const documented = (route: Route) => [...route.statuses, ...errorsOf(route).map(code => STATUS_OF[code])]

const TABLES = [
  'job',
  'dead_letter',
  'finished_job',
  'attempt',
  'queue',
  'policy',
  'token',
  'failure_group',
  'breaker',
  'idempotency_key',
  'audit',
]

async function stateOf(db: Database): Promise<unknown> {
  const texts = TABLES.map(
    table =>
      `SELECT '${table}' AS name, count(*) AS rows, md5(coalesce(string_agg(t::text, ',' ORDER BY t::text), '')) AS hash FROM redrive.${table} t`,
  )
  return db.query({ text: texts.join(' UNION ALL ') })
}

const RUNS = Number(process.env.FUZZ_RUNS ?? 1_000)

describe.each(LIBRARIES)('$name', ({ kind }) => {
  let desk: Desk | undefined
  let found: ReadonlyMap<string, string> = new Map()
  beforeEach(async () => {
    if (desk) return
    desk = await openDesk(kind, { throttle: { failures: 1_000_000 }, tokens: 'root:admin+payload:root-secret' })
    const id = await aDeadLetter(desk, 'fuzzed', { message: 'something to find' })
    const { body } = await desk.ask(`GET /dead-letter-queue/${id}`)
    found = new Map([
      [ITS_ID, id],
      [ITS_GROUP, body.fingerprint],
    ])
  })

  it('only documented answers come back', { timeout: 300_000 }, async () => {
    const { ask } = desk as Desk
    const seen = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(request, async generated => {
        const { what, lost, ask: asked } = sent(generated, found)
        const { status, body } = await ask(what, asked)
        seen.set(status, (seen.get(status) ?? 0) + 1)
        const allowed = [...documented(routeOf(generated)), ...(lost ? [400, 404, 405] : [])]
        const told = `${what.slice(0, 300)} → ${status} ${JSON.stringify(body).slice(0, 500)}`
        expect(allowed, told).toContain(status)
        expect(status, told).toBeLessThan(500)
      }),
      { numRuns: RUNS, endOnFailure: true },
    )
    // It went further than the first check.
    for (const status of [200, 400, 404]) expect(seen.get(status), `${status} of ${[...seen]}`).toBeGreaterThan(0)
  })

  it('what was refused changed nothing', { timeout: 300_000 }, async () => {
    const { ask, db } = desk as Desk
    const before = await stateOf(db)
    await fc.assert(
      fc.asyncProperty(request, async generated => {
        const { what, ask: asked } = sent({ ...generated, query: { ...generated.query, 'not-a-field': 'x' } }, found)
        expect((await ask(what, asked)).status).toBeGreaterThanOrEqual(400)
      }),
      { numRuns: 300, endOnFailure: true },
    )
    expect(await stateOf(db)).toEqual(before)
  })
})
