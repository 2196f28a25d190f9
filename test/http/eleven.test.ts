// The eleven calls of the contract, as an operator makes them, over a real connection.
import { afterAll, beforeEach, describe, expect, it } from 'vitest'
import { serve } from '../../src/http/index.js'
import { LIBRARIES } from '../support/library.js'
import { type Answer, type Ask, aDeadLetter, askOf, type Desk, openDesk } from './support/desk.js'

const servers = new Set<() => Promise<void>>()
afterAll(async () => {
  for (const close of servers) await close()
})

describe.each(LIBRARIES)('$name', ({ kind }) => {
  let desk: Desk
  let ask: (what: string, asked?: Ask) => Promise<Answer>
  let made = false
  beforeEach(async () => {
    if (made) return
    desk = await openDesk(kind)
    const { url, close } = await serve(desk.http, { port: 0 })
    servers.add(close)
    ask = (what, asked) => askOf(fetch, what, asked, url)
    made = true
  })

  it('statistics: counts by queue, and what became of what died', async () => {
    await aDeadLetter(desk, 'counted')
    const { status, body } = await ask('GET /statistics')
    expect(status).toBe(200)
    const row = body.queueStatistics.find((queue: { queue_name: string }) => queue.queue_name === 'counted')
    expect(row).toMatchObject({
      waiting_count: 0,
      active_count: 0,
      completed_count: 0,
      failed_count: 1,
      retryable_count: 0,
    })
    expect(body.deadLetterQueueSummary).toContainEqual({
      queue_name: 'counted',
      total_failed_jobs: 1,
      pending_recovery: 1,
      redriving: 0,
      recovered: 0,
      permanently_failed: 0,
    })
  })

  it('the list: filters, pages, offset', async () => {
    const ids: string[] = []
    for (const message of ['first', 'second', 'third']) ids.unshift(await aDeadLetter(desk, 'listed', { message }))
    const of = (body: Answer['body']) => body.items.map(({ id }: { id: string }) => id)
    const all = await ask('GET /dead-letter-queue?queue=listed')
    expect(all.status).toBe(200)
    expect(of(all.body)).toEqual(ids)
    expect(all.body).toMatchObject({ nextCursor: null, total: { value: 3, exact: true } })
    const first = await ask('GET /dead-letter-queue?queue=listed&limit=2')
    expect(of(first.body)).toEqual(ids.slice(0, 2))
    const rest = await ask(`GET /dead-letter-queue?queue=listed&limit=2&cursor=${first.body.nextCursor}`)
    expect(of(rest.body)).toEqual(ids.slice(2))
    expect(rest.body.total).toEqual({ value: 3, exact: true })
    expect(of((await ask('GET /dead-letter-queue?queue=listed&offset=1&limit=1')).body)).toEqual([ids[1]])
    expect(of((await ask('GET /dead-letter-queue?queue=listed&q=SECOND')).body)).toEqual([ids[1]])
    expect(of((await ask('GET /dead-letter-queue?queue=listed&status=recovered')).body)).toEqual([])
    const [{ fingerprint }] = all.body.items
    const grouped = await ask(`GET /dead-letter-queue?group=${encodeURIComponent(fingerprint)}&queue=listed`)
    expect(of(grouped.body)).toContain(ids[0])
  })

  it('one dead letter, with every attempt; one that is not there is 404', async () => {
    const id = await aDeadLetter(desk, 'looked', { message: 'why' })
    const { status, body } = await ask(`GET /dead-letter-queue/${id}`)
    expect(status).toBe(200)
    expect(body).toMatchObject({
      id,
      queue: 'looked',
      status: 'pending',
      payload: { message: 'why' },
      totalAttempts: 1,
    })
    expect(body.attempts).toHaveLength(1)
    expect(body.attempts[0]).toMatchObject({ number: 1, outcome: 'failed', decision: 'bury' })
    const missing = await ask('GET /dead-letter-queue/00000000-0000-7000-8000-000000000000')
    expect(missing).toMatchObject({ status: 404, body: { code: 'NOT_FOUND', status: 404 } })
    expect(missing.headers.get('content-type')).toBe('application/problem+json')
  })

  it('retry: the dead letter is redriving, and a second call a conflict', async () => {
    const id = await aDeadLetter(desk, 'retried')
    const first = await ask(`POST /dead-letter-queue/${id}/retry`, { body: { reason: 'the bank is back' } })
    expect(first).toMatchObject({ status: 200, body: { id, status: 'redriving', recoveryAttempts: 1 } })
    const second = await ask(`POST /dead-letter-queue/${id}/retry`)
    expect(second).toMatchObject({ status: 409, body: { code: 'NOT_PENDING' } })
    expect(await desk.audit('dead_letter', id)).toMatchObject([
      { actor: 'root', action: 'retry', reason: 'the bank is back', after: { status: 'redriving' } },
    ])
  })

  it('mark-failed: needs a reason, and closes for good', async () => {
    const id = await aDeadLetter(desk, 'closed')
    expect(await ask(`POST /dead-letter-queue/${id}/mark-failed`, { body: {} })).toMatchObject({
      status: 400,
      body: { code: 'REQUEST_INVALID', issues: [{ in: 'body', field: 'reason' }] },
    })
    const done = await ask(`POST /dead-letter-queue/${id}/mark-failed`, { body: { reason: 'refunded by hand' } })
    expect(done).toMatchObject({ status: 200, body: { status: 'permanently_failed', resolution: 'refunded by hand' } })
    expect(await ask(`POST /dead-letter-queue/${id}/mark-failed`, { body: { reason: 'again' } })).toMatchObject({
      status: 409,
      body: { code: 'NOT_PENDING' },
    })
  })

  it('notes: what is given is changed, null takes it away', async () => {
    const id = await aDeadLetter(desk, 'noted')
    const given = { notes: 'asked the bank', assignedTo: 'ada', priority: 9 }
    expect((await ask(`PUT /dead-letter-queue/${id}/notes`, { body: given })).body).toMatchObject(given)
    const { body } = await ask(`PUT /dead-letter-queue/${id}/notes`, { body: { notes: null } })
    expect(body).toMatchObject({ assignedTo: 'ada', priority: 9 })
    expect(body.notes).toBeUndefined()
    expect(await ask(`PUT /dead-letter-queue/${id}/notes`, { body: {} })).toMatchObject({ status: 400 })
  })

  it('pause and resume', async () => {
    expect(await ask('POST /queues/halted/pause')).toMatchObject({
      status: 200,
      body: { name: 'halted', paused: true, pausedBy: 'root' },
    })
    const { items } = (await ask('GET /queues')).body
    expect(items).toContainEqual(expect.objectContaining({ queue: 'halted', paused: true }))
    expect(await ask('POST /queues/halted/resume')).toMatchObject({ status: 200, body: { paused: false } })
    expect(await ask('POST /queues/nobody/resume')).toMatchObject({ status: 404 })
  })

  it('clean: open dead letters stay unless it is said', async () => {
    const id = await aDeadLetter(desk, 'cleaned')
    const clean = (body: object) => ask('POST /queues/cleaned/clean', { body })
    expect(await clean({ grace: 0, status: 'dead' })).toMatchObject({ status: 200, body: { removed: 0 } })
    expect((await ask(`GET /dead-letter-queue/${id}`)).status).toBe(200)
    expect((await clean({ grace: 0, status: 'dead', includeOpen: true })).body).toEqual({ removed: 1 })
    expect((await ask(`GET /dead-letter-queue/${id}`)).status).toBe(404)
    expect(await clean({ grace: 0, status: 'active' })).toMatchObject({ status: 400 })
  })

  it('recovery: a run on demand, and how they went', async () => {
    const run = await ask('POST /trigger-recovery')
    expect(run.status).toBeLessThan(300)
    expect(run.body).toMatchObject({ id: expect.any(String) })
    const { status, body } = await ask('GET /recovery-status')
    expect(status).toBe(200)
    expect(Object.keys(body).sort()).toEqual(
      ['totalRuns', 'successfulRuns', 'failedRuns', 'lastRunAt', 'lastRunDuration', 'running', 'recent'].sort(),
    )
    expect(body.totalRuns).toBeGreaterThanOrEqual(1)
    expect(body.recent[0]).toHaveProperty('rescued')
  })
})
