// pitfall 27: the console prints other people's strings: script injection (CVE-2023-1892, CVE-2024-32887, CVE-2022-30034). Our rule:
// closed by default, each route asks for its scope by itself, and strings leave as JSON that no browser takes for anything else.
//
// Seen to fail: with answers of type text/html; with a route that declares no scope.
import { beforeEach, expect, it } from 'vitest'
import { allRoutes } from '../../src/http/openapi.js'
import { aDeadLetter, type Desk, openDesk, SECRETS } from '../http/support/desk.js'

const SCRIPT = '<script>alert(document.cookie)</script><img src=x onerror=alert(1)>'

let desk: Desk
beforeEach(async () => {
  desk ??= await openDesk('memory')
})

it('what handlers threw and people wrote comes back as it is, as JSON, and as nothing else', async () => {
  const id = await aDeadLetter(desk, SCRIPT, { message: SCRIPT, [SCRIPT]: SCRIPT })
  await desk.ask(`PUT /dead-letter-queue/${id}/notes`, { body: { notes: SCRIPT, assignedTo: SCRIPT } })
  const { body, headers } = await desk.ask(`GET /dead-letter-queue/${id}`, { token: SECRETS['read+payload'] })
  expect(body).toMatchObject({
    queue: SCRIPT,
    message: SCRIPT,
    notes: SCRIPT,
    assignedTo: SCRIPT,
    payload: { [SCRIPT]: SCRIPT },
  })
  expect(headers.get('content-type')).toBe('application/json')
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('content-security-policy')).toContain("default-src 'none'")
})

it('errors repeat strings of others as JSON too', async () => {
  for (const what of [`GET /jobs?${encodeURIComponent(SCRIPT)}=1`, `GET /groups/${encodeURIComponent(SCRIPT)}`]) {
    const { status, headers } = await desk.ask(what)
    expect([400, 404]).toContain(status)
    expect(headers.get('content-type')).toBe('application/problem+json')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
  }
})

it('nothing but the sign of life is open to whoever comes', () => {
  expect(
    allRoutes('')
      .filter(({ scope }) => scope === 'none')
      .map(({ path }) => path),
  ).toEqual(['/healthz'])
})
