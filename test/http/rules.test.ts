// Triage rules and rate limits over HTTP: made, changed, tried, run and taken away, with an audit of each.
import { beforeAll, expect, it } from 'vitest'
import { defineJob } from '../../src/index.js'
import { aDeadLetter, type Desk, openDesk } from './support/desk.js'

let desk: Desk
beforeAll(async () => {
  desk = await openDesk('memory')
}, 120_000)

const TIMEOUT = { timeout: 120_000 }

it('a triage rule is written, tried, run and taken away', TIMEOUT, async () => {
  const { ask, audit } = desk
  const id = await aDeadLetter(desk, 'ruled', { message: 'no such mailbox' })
  const body = { match: { text: 'mailbox' }, action: { type: 'assign', to: 'ada' }, enabled: false }
  const made = await ask('PUT /triage-rules/mailboxes', { body: { ...body, reason: 'asked for' } })
  expect(made).toMatchObject({ status: 201, body: { name: 'mailboxes', version: 1, maxPerLetter: 1 } })
  expect(made.headers.get('etag')).toBe('"1"')

  const tried = await ask('POST /triage-rules/run', { body: { dryRun: true, rule: 'mailboxes' } })
  expect(tried.body.rules).toMatchObject([{ rule: 'mailboxes', acted: 1, sample: [{ id }] }])
  expect((await ask(`GET /dead-letter-queue/${id}`)).body.assignedTo).toBeUndefined()

  const enabled = await ask('PUT /triage-rules/mailboxes', {
    body: { ...body, enabled: true },
    headers: { 'if-match': '"1"' },
  })
  expect(enabled).toMatchObject({ status: 200, body: { version: 2, enabled: true } })
  const late = await ask('PUT /triage-rules/mailboxes', { body, headers: { 'if-match': '"1"' } })
  expect(late).toMatchObject({ status: 412, body: { code: 'VERSION_CONFLICT', version: 2 } })

  const run = await ask('POST /triage-rules/run', { body: { reason: 'now' } })
  expect(run).toMatchObject({ status: 200, body: { dryRun: false, rules: [{ rule: 'mailboxes', acted: 1 }] } })
  expect((await ask(`GET /dead-letter-queue/${id}`)).body.assignedTo).toBe('ada')
  expect((await audit('triage_rule', 'all'))[0]).toMatchObject({ actor: 'root', action: 'run triage', reason: 'now' })

  expect((await ask('GET /triage-rules')).body.items).toMatchObject([{ name: 'mailboxes' }])
  expect((await ask('DELETE /triage-rules/mailboxes')).body).toMatchObject({ items: [] })
  expect(await ask('DELETE /triage-rules/mailboxes')).toMatchObject({ status: 404, body: { code: 'NOT_FOUND' } })
  expect((await audit('triage_rule', 'mailboxes')).map(({ action }) => action)).toEqual(['remove', 'update', 'create'])
})

it('a rule for everything is refused, and so is one rule without a dry run', TIMEOUT, async () => {
  const empty = { match: {}, action: { type: 'discard', reason: 'all of them' } }
  expect(await desk.ask('PUT /triage-rules/all', { body: empty })).toMatchObject({
    status: 400,
    body: { code: 'REQUEST_INVALID', issues: [{ field: 'match', message: 'must have at least one condition' }] },
  })
  expect((await desk.ask('POST /triage-rules/run', { body: { rule: 'x' } })).status).toBe(400)
})

it('a rate limit is set for all keys or one, seen, and given back to the code', TIMEOUT, async () => {
  const { ask, audit, redrive } = desk
  const set = await ask('PUT /rate-limit-settings/mails', {
    body: { limit: 5, intervalMs: 1_000, reason: 'slow down' },
  })
  expect(set.body.items).toMatchObject([{ name: 'mails', limit: 5, intervalMs: 1_000, burst: 1, setBy: 'root' }])
  const one = await ask('PUT /rate-limit-settings/mails', { body: { limit: 1, intervalMs: 60_000, key: 'acme' } })
  expect(one.body.items).toHaveLength(2)
  expect((await ask('GET /rate-limit-settings')).body.total).toEqual({ value: 2, exact: true })
  expect(await ask('PUT /rate-limit-settings/mails', { body: { limit: 0, intervalMs: 1_000 } })).toMatchObject({
    status: 400,
    body: { code: 'SETTING_INVALID' },
  })

  const job = defineJob({
    name: 'mail',
    queue: 'mail',
    rateLimit: { name: 'mails', limit: 1_000, intervalMs: 1_000, key: 'tenant' },
    handler: () => 1,
  })
  const worker = redrive.work([job])
  const tenants = ['a', 'b', 'c']
  const done = Promise.all(tenants.map(tenant => desk.next('job.completed', ({ job }) => job.tenant === tenant)))
  const batch = tenants.map(tenant => ({ payload: null, options: { tenant } }))
  await redrive.enqueueMany(job, batch)
  await done
  await worker.stop()
  const first = await ask('GET /rate-limits?name=mails&limit=2')
  expect(first.body.items.map(({ key }: { key: string }) => key)).toEqual(['a', 'b'])
  const rest = await ask(`GET /rate-limits?name=mails&limit=2&cursor=${first.body.nextCursor}`)
  expect(rest.body).toMatchObject({ items: [{ name: 'mails', key: 'c', held: 0 }], nextCursor: null })

  await ask('DELETE /rate-limit-settings/mails', { body: { key: 'acme' } })
  expect((await ask('DELETE /rate-limit-settings/mails')).body.items).toEqual([])
  expect((await audit('rate_limit', 'mails')).map(({ action }) => action)).toEqual(['set rate limit', 'set rate limit'])
})

it('lists of groups, workers and the audit say how many there are, not how many are shown', TIMEOUT, async () => {
  const { ask } = desk
  await aDeadLetter(desk, 'many', { message: 'one cause' })
  await aDeadLetter(desk, 'many', { message: 'quite another' })
  const [groups, workers, audit] = [
    await ask('GET /groups?limit=1&queue=many'),
    await ask('GET /workers?limit=1&ended=true'),
    await ask('GET /audit?limit=1'),
  ]
  expect(groups.body).toMatchObject({ items: [{}], total: { value: 2, exact: true } })
  expect(workers.body.total).toEqual({ value: expect.any(Number), exact: true })
  expect(workers.body.total.value).toBeGreaterThan(1)
  expect(audit.body.total.value).toBeGreaterThan(1)
  expect((await ask('GET /groups?queue=nobody')).body.total).toEqual({ value: 0, exact: true })
})
