// pitfall 24: what a sync asks about services finds its way in tables that were never analyzed: it looks at the slices
// of the asked services and of their windows, however many others there are.
import { expect, it } from 'vitest'
import { type Database, type Param, type Statement, sql } from '../../src/ledger/database.js'
import { addSightings, forgetSightings, seenOf } from '../../src/ledger/service-window.js'
import { freshDatabase } from '../support/databases.js'

const FILL = sql`
  INSERT INTO redrive.service_window (service, at, source, first_attempts, retries, succeeded, failed, run)
  SELECT 'service-' || s, now() - n * interval '5 seconds', gen_random_uuid(), 1, 0, 1, 0, 0
  FROM generate_series(1, 50) s CROSS JOIN generate_series(1, 1000) n`

/** How many pages each statement touches. It is run twice for that, which harms nothing here. */
function counting(db: Database) {
  const pages: number[] = []
  const query: Database['query'] = async (statement: Statement, params: readonly Param[] = []) => {
    const text = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement.text}`
    const [row] = await db.query<{ 'QUERY PLAN': unknown }>({ text }, params)
    const told = row?.['QUERY PLAN']
    const [{ Plan: plan }] = (typeof told === 'string' ? JSON.parse(told) : told) as [{ Plan: Record<string, number> }]
    pages.push((plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0))
    return db.query(statement, params)
  }
  return { db: { ...db, query } as Database, pages }
}

it.each(['memory', 'server'] as const)('pitfall 24: on %s, a sync touches few pages of many', async kind => {
  const fresh = await freshDatabase(kind)
  await fresh.db.query(FILL)
  const { db, pages } = counting(fresh.db)
  const source = '00000000-0000-7000-8000-000000000001'
  const seen = { firstAttempts: 1, retries: 0, succeeded: 1, failed: 0, run: 0, runSince: null, lastSuccessAt: null }
  await addSightings(db, source, [{ service: 'service-7', sliceMs: 5_000, ...seen }])
  const found = await seenOf(db, [{ service: 'service-7', healthMs: 30_000, attemptsMs: 30_000, since: 0 }])
  expect(found.length).toBeGreaterThanOrEqual(6)
  await forgetSightings(db, 4_990_000, 1_000)
  const [add, see, forget] = pages as [number, number, number]
  expect(add).toBeLessThan(50)
  expect(see).toBeLessThan(50)
  expect(forget).toBeLessThan(1_500)
})
