// Maintenance works in bounded batches, and no statement of ours may run for ever.
// Seen red: with a LIMIT a thousand times larger in EXPIRE_DEAD_LETTERS, and without statement_timeout in openPg.
import { describe, expect, it } from 'vitest'
import type { Database, Statement } from '../../src/ledger/database.js'
import { ensureHistoryDays } from '../../src/ledger/retention.js'
import { DEFAULT_RETENTION } from '../../src/runtime/janitor.js'
import { Recovery } from '../../src/runtime/recovery.js'
import { freshDatabase } from '../support/databases.js'
import { openRuntime } from '../support/runtime.js'

/** Why a statement without a LIMIT is bounded all the same. */
const BOUNDED_OTHERWISE: readonly [RegExp, string][] = [
  [/pg_advisory_xact_lock/, 'a lock'],
  [/redrive\.triage_progress/, 'one row'],
  [/redrive\.recovery_run/, 'one row, or a month of runs'],
  [/ensure_history_day|drop_history_before/, 'whole partitions'],
  [/redrive\.tally/, 'rows are counts: one for each queue, day and settling lane'],
  [/redrive\.dead_letter_count/, 'rows are counts: one for each queue, status, kind and connection'],
  [/redrive\.make_groups\(/, 'it takes its limit'],
  [/redrive\.promote\(/, 'it takes its limit'],
  [/FROM redrive\.queue\s+WHERE/, 'the settings of queues'],
]

describe('pitfall 19: maintenance queries too big for an ill database', () => {
  it('pitfall 19: every statement of a recovery run has a LIMIT, or a reason to need none', async () => {
    const statements = new Set<string>()
    const recorded = (db: Database): Database => ({
      ...db,
      query: (statement: Statement, params) => {
        statements.add(statement.text)
        return db.query(statement, params)
      },
    })
    const { runtime, clock } = await openRuntime('memory', ({ db }) => ({ db: recorded(db) }))
    clock.now = '2030-01-01T00:00:00Z'
    const recovery = new Recovery(runtime, {
      intervalMs: 1_000,
      leaseMs: 15_000,
      retention: DEFAULT_RETENTION,
      worker: 'w',
    })
    expect(await recovery.run()).toMatchObject({ status: 'succeeded' })
    const unbounded = [...statements].filter(
      text => !/\bLIMIT\b/.test(text) && !BOUNDED_OTHERWISE.some(([known]) => known.test(text)),
    )
    expect(unbounded).toEqual([])
    expect(statements.size).toBeGreaterThan(8)
  })

  it('pitfall 19: what is past its retention goes in batches, not in one statement', async () => {
    const batches: number[] = []
    const counted = (db: Database): Database => ({
      ...db,
      async query<Row>(statement: Statement, params?: Parameters<Database['query']>[1]) {
        const rows = await db.query<Row>(statement, params)
        if (/DELETE FROM redrive\.dead_letter\b/.test(statement.text)) batches.push(rows.length)
        return rows
      },
    })
    const { runtime, clock, db } = await openRuntime('memory', ({ db }) => ({ db: counted(db) }))
    clock.now = '2030-01-01T00:00:00Z'
    await ensureHistoryDays(db, 1)
    await db.query({
      text: `INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, resolved_at, job_created_at, total_attempts, lost,
               redrives, job_priority, status, outcome, kind, queue, name, payload, reason, message, fingerprint)
             SELECT gen_random_uuid(), 1, t, t, t, t, 1, 0, 0, 5, 'recovered', 'failed', 'transient', 'mail', 'send', '{}', 'r', 'm', 'f'
             FROM (SELECT timestamptz '2029-01-01' AS t) clock, generate_series(1, 2500)`,
    })
    const recovery = new Recovery(runtime, {
      intervalMs: 1_000,
      leaseMs: 15_000,
      retention: DEFAULT_RETENTION,
      worker: 'w',
    })
    expect(await recovery.run()).toMatchObject({ expired: 2_500 })
    expect(batches).toEqual([1_000, 1_000, 500])
  })

  it('pitfall 19: connections of our own have a statement timeout, and what exceeds it is given up with a code', async () => {
    const { db, another } = await freshDatabase('server')
    const [shown] = await db.query<{ statement_timeout: string }>({ text: 'SHOW statement_timeout' })
    expect(shown?.statement_timeout).toBe('30s')
    const impatient = another({ statementTimeoutMs: 100 })
    await expect(impatient.query({ text: 'SELECT pg_sleep(60)' })).rejects.toMatchObject({ code: 'STATEMENT_TIMEOUT' })
    const [idle] = await impatient.query<Record<string, string>>({ text: 'SHOW idle_in_transaction_session_timeout' })
    expect(idle?.idle_in_transaction_session_timeout).toBe('200ms')
  })
})
