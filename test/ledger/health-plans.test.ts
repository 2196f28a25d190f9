// pitfall 24 for what people ask most when things go wrong: health, statistics, an explanation, the policies at run time.
// On tables that are large and were never analyzed, each statement reads few pages, and no large table whole.
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { type Database, type Param, type Statement, sql } from '../../src/ledger/database.js'
import { lookForExhausted } from '../../src/ledger/exhausted.js'
import { readLines } from '../../src/ledger/health.js'
import { newestPolicies } from '../../src/ledger/policy.js'
import { endedWithin, takePulse } from '../../src/ledger/pulse.js'
import { explainJob } from '../../src/operator/explain.js'
import { statistics } from '../../src/operator/statistics.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'

const EACH = 200_000

const JOBS = sql`
  INSERT INTO redrive.job (id, in_line, state, queue, name, priority, payload, run_at, created_at, attempt)
  SELECT gen_random_uuid(), $2 = 'waiting', $2::redrive.job_state, 'mail', 'send', n % 11, '{}', now() + $3::interval, now(), 0
  FROM generate_series(1, $1::integer) n`
const LETTERS = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, status, resolved_at, outcome, kind, queue, name, payload, reason, message, fingerprint)
  SELECT gen_random_uuid(), n, now(), now(), now(), 1, 0, 0, 5,
    CASE WHEN n % 2 = 0 THEN 'pending' ELSE 'recovered' END::redrive.recovery_status, CASE WHEN n % 2 = 1 THEN now() END,
    'failed', 'transient', 'mail', 'send', '{}', 'r', 'm', 'v1:' || n % 500
  FROM generate_series(1, $1::integer) n`
const CAUSES = sql`
  INSERT INTO redrive.failure_group (fingerprint, title, kind, first_seen, last_seen, failures, deaths, updated_at)
  SELECT 'v1:' || n, 't', 'transient', now(), now(), 1, 1, now() FROM generate_series(1, 3000) n`
const SLICES = sql`
  INSERT INTO redrive.failure_tally (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at, first_job, sample_job, noticed)
  SELECT 'v1:' || n, 'mail', 'send', '', now() - slice * interval '5 minutes', 0, 1, 1,
    now() - slice * interval '5 minutes', gen_random_uuid(), gen_random_uuid(), true
  FROM generate_series(0, 66) slice, generate_series(1, 3000) n`
const ATTEMPTS = sql`
  INSERT INTO redrive.attempt (job_id, lease, number, round, finished_at, outcome, decision, kind, queue, name, reason,
    because, message, fingerprint)
  SELECT gen_random_uuid(), n, 1, 0, now(), 'failed', 'retry', 'transient', 'mail', 'send', 'r', 'b', 'm', 'v1:1'
  FROM generate_series(1, $1::integer) n`
const RUNS = sql`
  INSERT INTO redrive.recovery_run (cause, worker, status, started_at, alive_at, finished_at)
  SELECT 'schedule', 'w', 'succeeded', now(), now(), now() FROM generate_series(1, 20000)`

const LARGE = new Set(['job', 'dead_letter', 'attempt', 'failure_tally', 'recovery_run'])

interface Node {
  readonly 'Node Type': string
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly 'Relation Name'?: string
  readonly Plans?: readonly Node[]
}
const flat = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(flat)]

/** A database that notes the plan of each statement before it runs it. */
function recording(db: Database) {
  const nodes: Node[] = []
  const seen = { pages: 0 }
  const query = async <Row>(statement: Statement, params: readonly Param[] = []) => {
    const text = `EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${statement.text}`
    const reads = /^\s*(?:SELECT|WITH)\b/.test(statement.text) && !/\b(?:INSERT|UPDATE|DELETE)\b/.test(statement.text)
    const [row] = reads ? await db.query<{ 'QUERY PLAN': { Plan: Node }[] }>({ text }, params) : []
    for (const { Plan } of row?.['QUERY PLAN'] ?? []) {
      seen.pages += Plan['Shared Hit Blocks'] + Plan['Shared Read Blocks']
      nodes.push(...flat(Plan))
    }
    return db.query<Row>(statement, params)
  }
  return { db: { ...db, query } satisfies Database, nodes, seen }
}

describe('pitfall 24: on tables of 200,000 rows that were never analyzed', () => {
  let db: Database
  let someJob: JobId

  beforeFirst(async () => {
    db = (await freshDatabase('server')).db
    for (const table of LARGE) await db.query({ text: `ALTER TABLE redrive.${table} SET (autovacuum_enabled = false)` })
    await db.query(JOBS, [EACH, 'waiting', '0'])
    await db.query(JOBS, [EACH, 'retrying', '1 hour'])
    await db.query(LETTERS, [EACH])
    await db.query(CAUSES)
    await db.query(SLICES)
    await db.query(ATTEMPTS, [EACH])
    await db.query(RUNS)
    await takePulse(db)
    const last = sql`SELECT id FROM redrive.job WHERE in_line ORDER BY queue DESC, name DESC, line DESC LIMIT 1`
    someJob = (await db.query<{ id: JobId }>(last))[0]?.id as JobId
  })

  const desk = (db: Database) => statistics({ db, wake: () => {} })

  it.each<[string, number, (db: Database) => Promise<unknown>]>([
    ['what health is judged by', 12_000, db => readLines(db)],
    ['what ended lately', 100, db => endedWithin(db, 900_000)],
    ['the policies at run time', 100, db => newestPolicies(db, [{ scope: 'queue', target: 'mail' }])],
    ['an explanation', 3_000, db => explainJob(db, {}, someJob)],
    [
      'a look for exhausted jobs',
      10_000,
      db => lookForExhausted(db, { queues: ['mail'], jobs: [] }, 1_000, { runAt: '-infinity', line: '0' }),
    ],
    ['statistics', 30_000, db => desk(db).statistics()],
    ['failure reasons', 30_000, db => desk(db).failureReasons()],
  ])('%s needs no more than %d pages, and no large table whole', async (_what, most, act) => {
    const { db: recorded, nodes, seen } = recording(db)
    await act(recorded)
    expect(nodes.length).toBeGreaterThan(0)
    const whole = nodes.filter(node => node['Node Type'] === 'Seq Scan' && LARGE.has(node['Relation Name'] ?? ''))
    expect(whole).toEqual([])
    expect(seen.pages).toBeLessThan(most)
  })
})
