// Tokens: made, used, revoked; closed by default; those who guess are made to wait; refusals leave a trace.
import { createHash } from 'node:crypto'
import { beforeEach, describe, expect, it } from 'vitest'
import { parseTokens } from '../../src/http/configured-tokens.js'
import { createHttp } from '../../src/http/index.js'
import { Throttle } from '../../src/http/throttle.js'
import { sql } from '../../src/ledger/database.js'
import { manualClock } from '../../src/testing/index.js'
import { askOf, type Desk, openDesk, SECRETS } from './support/desk.js'

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory', { throttle: { failures: 1_000 } })
})

describe('made tokens', () => {
  it('a secret is shown once, stored as SHA-256, and opens what its scopes say until it is revoked', async () => {
    const made = await desk.ask('POST /tokens', { body: { name: 'ci', scopes: ['read'], reason: 'the pipeline' } })
    expect(made.status).toBe(201)
    const { secret } = made.body
    expect(Buffer.from(secret.replace('rdr_', ''), 'base64url')).toHaveLength(32)
    const rows = await desk.db.query(sql`SELECT * FROM redrive.token`)
    expect(JSON.stringify(rows)).not.toContain(secret)
    expect(rows).toMatchObject([{ name: 'ci', hash: createHash('sha256').update(secret).digest('hex') }])
    expect(await desk.ask('GET /me', { token: secret })).toMatchObject({
      status: 200,
      body: { name: 'ci', scopes: ['read'] },
    })
    expect(await desk.ask('POST /queues/x/pause', { token: secret })).toMatchObject({ status: 403 })
    expect((await desk.ask('GET /tokens')).body.items).toMatchObject([{ name: 'ci', createdBy: 'root' }])
    expect(JSON.stringify((await desk.ask('GET /tokens')).body)).not.toMatch(/hash|secret/)
    expect(await desk.ask('POST /tokens', { body: { name: 'ci', scopes: ['admin'] } })).toMatchObject({ status: 409 })
    expect(await desk.ask('DELETE /tokens/ci')).toMatchObject({ status: 200, body: { name: 'ci' } })
    expect(await desk.ask('GET /me', { token: secret })).toMatchObject({ status: 401 })
    expect(await desk.audit('token', 'ci')).toMatchObject([
      { actor: 'root', action: 'revoke token' },
      { actor: 'root', action: 'create token', reason: 'the pipeline', after: { scopes: ['read'] } },
    ])
  })

  it('without any token nobody comes in', async () => {
    const closed = createHttp(desk.redrive, { env: {} })
    for (const token of [null, '', 'x', SECRETS.admin]) {
      expect((await askOf(closed.fetch, 'GET /statistics', { token })).status).toBe(401)
    }
    expect((await askOf(closed.fetch, 'GET //healthz', { token: null })).body).toEqual({ status: 'ok' })
  })
})

describe('REDRIVE_TOKENS', () => {
  it('is read from the environment; a secret may hold a colon', () => {
    expect(parseTokens('a:read+payload:one:two:three, b:admin:long-enough')).toMatchObject([
      { name: 'a', scopes: ['read', 'payload'], hash: createHash('sha256').update('one:two:three').digest('hex') },
      { name: 'b', scopes: ['admin'] },
    ])
    expect(parseTokens('')).toEqual([])
  })

  it.each([
    ['a', /Token 1 of REDRIVE_TOKENS/],
    ['a:read', /name:scope\+scope:secret/],
    ['a:read:short', /8 to 512/],
    ['a:read:has a blank in it', /without blanks/],
    ['a:write:long-enough', /A scope of Token 1 of REDRIVE_TOKENS .* one of read, payload, operate, admin/],
    ['a::long-enough', /A scope of Token 1/],
    // In another order.
    ['a:long-enough:read+payload', /A scope of Token 1/],
    ['a:read+long-enough:payload', /8 to 512/],
    ['a:read+long-enough:operate+payload', /A scope of Token 1/],
    ['long-enough:read:a', /8 to 512/],
    ['read:a:long-enough', /A scope of Token 1/],
    ['read+payload:long-enough:production', /The name of Token 1 of REDRIVE_TOKENS/],
    [':read:long-enough', /The name of Token 1 of REDRIVE_TOKENS/],
    ['a b:read:long-enough', /The name of Token 1 of REDRIVE_TOKENS/],
    ['a:read:long-enough,a:read:also-enough', /The name of Token 2 of REDRIVE_TOKENS is "that of another"/],
  ])('%s is refused in words, without its secret', (text, message) => {
    expect(() => parseTokens(text)).toThrow(message)
    expect(() => parseTokens(text)).not.toThrow(/long-enough|has a blank/)
  })
})

describe('those who guess', () => {
  const from = (address: string) => ({ incoming: { socket: { remoteAddress: address } } })
  const guess = async (
    http: { fetch: (request: Request, env?: unknown) => Promise<Response> },
    token: string,
    address: string,
  ) => (await askOf(request => http.fetch(request, from(address)), 'GET /me', { token })).status

  it('are made to wait, by address, until the time is over', async () => {
    const clock = manualClock()
    const http = createHttp(desk.redrive, {
      tokens: 'root:admin:root-secret',
      env: {},
      clock,
      throttle: { failures: 3, windowMs: 60_000 },
    })
    for (let tries = 0; tries < 3; tries += 1) expect(await guess(http, `wrong-${tries}`, '10.0.0.1')).toBe(401)
    expect(await guess(http, 'root-secret', '10.0.0.1')).toBe(429)
    expect(await guess(http, 'root-secret', '10.0.0.2')).toBe(200)
    const told = await askOf(request => http.fetch(request, from('10.0.0.1')), 'GET /me')
    expect(told).toMatchObject({ status: 429, body: { code: 'THROTTLED' } })
    expect(told.headers.get('retry-after')).toBe('60')
    await clock.advance(60_000)
    expect(await guess(http, 'root-secret', '10.0.0.1')).toBe(200)
  })

  it('do not lock out whoever shares their address and has a token that we made', async () => {
    const { secret } = await desk.redrive.operator.tokens.create('beside', ['read'])
    const http = createHttp(desk.redrive, {
      tokens: 'root:admin:root-secret',
      throttle: { failures: 3, windowMs: 60_000 },
      clock: manualClock(),
    })
    for (let tried = 0; tried < 3; tried += 1) expect(await guess(http, `guess-${tried}`, '10.0.0.3')).toBe(401)
    expect(await guess(http, 'guess-again', '10.0.0.3')).toBe(429)
    expect(await guess(http, 'root-secret', '10.0.0.3')).toBe(429)
    expect(await guess(http, secret, '10.0.0.3')).toBe(200)
    expect(await guess(http, 'guess-again', '10.0.0.3')).toBe(429)
  })

  it('one network of IPv6 is one address; the oldest are forgotten', () => {
    const throttle = new Throttle(manualClock(), { failures: 1, windowMs: 60_000 })
    throttle.failed('2001:db8:1:2::1')
    expect(throttle.waitMs('2001:0db8:0001:0002:ffff:1:2:3')).toBeGreaterThan(0)
    expect(throttle.waitMs('2001:db8:1:3::1')).toBe(0)
    for (let host = 0; host < 10_000; host += 1) throttle.failed(`host-${host}`)
    expect(throttle.waitMs('2001:db8:1:2::1')).toBe(0)
    expect(throttle.waitMs('host-9999')).toBeGreaterThan(0)
  })

  it('leave a trace: who, what, and how many more, at most so many a minute', async () => {
    const clock = manualClock()
    const http = createHttp(desk.redrive, {
      tokens: 'low:read:low-secret',
      env: {},
      clock,
      throttle: { failures: 1_000 },
    })
    const trace = () => desk.audit('request', 'POST /trigger-recovery')
    const before = (await trace()).length
    const refuse = () => askOf(http.fetch, 'POST /trigger-recovery', { token: 'low-secret' })
    for (let tries = 0; tries < 65; tries += 1) expect((await refuse()).status).toBe(403)
    expect((await trace()).length - before).toBe(60)
    expect((await trace())[0]).toMatchObject({ actor: 'low', action: 'refused', after: { code: 'FORBIDDEN' } })
    await clock.advance(60_000)
    await refuse()
    expect((await trace())[0]).toMatchObject({ after: { leftOut: 5 } })
  })
})
