// A slow question has a limit of its own, is told as a 503, and takes nothing from workers.
import pg from 'pg'
import { expect, it } from 'vitest'
import { createHttp } from '../../src/http/index.js'
import { defineJob } from '../../src/index.js'
import { openLibrary } from '../support/library.js'
import { askOf, SECRETS, TOKENS } from './support/desk.js'

it('a question that waits too long is given up, while jobs run', { timeout: 180_000 }, async () => {
  const { redrive, url, next } = await openLibrary('server', { deskTimeoutMs: 200, poolSize: 2 })
  const http = createHttp(redrive, { tokens: TOKENS, env: {}, timeoutMs: 120_000, onError: () => {} })
  const ask = (what: string) => askOf(http.fetch, what, { token: SECRETS.operate })
  const job = defineJob({ name: 'goes-on', queue: 'lively', handler: () => 1 })
  redrive.work([job])
  // Somebody holds what the pages read, and nothing that workers need.
  const holder = new pg.Client({ connectionString: url })
  await holder.connect()
  await holder.query('BEGIN; LOCK TABLE redrive.triage_rule, redrive.idempotency_key, redrive.token, redrive.audit')
  try {
    const pages = await Promise.all(Array.from({ length: 20 }, () => ask('GET /audit')))
    for (const { status } of pages) expect(status).toBe(503)
    // On a busy machine a connection may be waited for in vain as well.
    expect(pages.map(({ body }) => body.code)).toContain('STATEMENT_TIMEOUT')
    const slow = Promise.all(Array.from({ length: 20 }, () => ask('GET /audit')))
    const done = next('job.completed')
    await redrive.enqueue(job, null)
    await done
    await slow
  } finally {
    await holder.query('ROLLBACK')
    await holder.end()
  }
  expect(await ask('GET /audit')).toMatchObject({ status: 200 })
})
