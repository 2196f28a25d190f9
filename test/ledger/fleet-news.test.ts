// pitfalls 19 and 24 for whoever watches: a look costs a few short index scans, however much the ledger holds.
import { describe, expect, it } from 'vitest'
import { type Database, sql } from '../../src/ledger/database.js'
import { fleetNews } from '../../src/ledger/fleet-news.js'
import { beforeFirst, freshDatabase } from '../support/databases.js'
import { explaining } from '../support/explaining.js'

const MANY = 20_000
const TABLES = ['dead_letter', 'audit', 'failure_group', 'recovery_run', 'session']

const LETTERS = sql`
  INSERT INTO redrive.dead_letter (id, lease, died_at, updated_at, job_created_at, total_attempts, lost, redrives,
    job_priority, outcome, kind, queue, name, payload, reason, message, fingerprint)
  SELECT gen_random_uuid(), g, timestamptz '2030-01-01' + g * interval '1 second', now(), now(), 1, 0, 0, 5, 'failed', 'network',
    'mail', 'send', '{}', 'over', repeat('m', 2000), 'v1:one' FROM generate_series(1, $1::integer) g`
const AUDIT = sql`
  INSERT INTO redrive.audit (at, actor, action, target_type, target)
  SELECT timestamptz '2030-01-01' + g * interval '1 second', 'ada', 'retry', 'dead_letter', g::text
  FROM generate_series(1, $1::integer) g`
const GROUPS = sql`
  INSERT INTO redrive.failure_group (fingerprint, title, kind, first_seen, last_seen, failures, deaths, updated_at)
  SELECT 'v1:' || g, 'cause ' || g, 'network', at, at, 1, 1, at
  FROM (SELECT g, timestamptz '2030-01-01' + g * interval '1 second' AS at FROM generate_series(1, $1::integer) g) numbers`
const RUNS = sql`
  INSERT INTO redrive.recovery_run (cause, worker, status, started_at, alive_at, finished_at)
  SELECT 'schedule', 'w', 'succeeded', at, at, at
  FROM (SELECT timestamptz '2030-01-01' + g * interval '1 second' AS at FROM generate_series(1, $1::integer) g) numbers`
const SESSIONS = sql`
  INSERT INTO redrive.session (worker, host, pid, queues, concurrency, started_at, renewed_at, expires_at, ended_at, ended_by)
  SELECT 'w', 'h', 1, '["mail"]', 1, at, at, at, at, 'stopped'
  FROM (SELECT timestamptz '2030-01-01' + g * interval '1 second' AS at FROM generate_series(1, $1::integer) g) numbers`

describe.each(['never analyzed', 'analyzed'] as const)(
  'pitfall 24: 20,000 of everything, %s',
  { timeout: 120_000 },
  state => {
    let db: Database
    beforeFirst(async () => {
      db = (await freshDatabase('server', { now: '2030-01-01T05:33:20Z' })).db
      for (const fill of [LETTERS, AUDIT, GROUPS, RUNS, SESSIONS]) await db.query(fill, [MANY])
      if (state === 'analyzed') for (const table of TABLES) await db.query({ text: `ANALYZE redrive.${table}` })
    })

    it('a look reads what is new, and nothing else', async () => {
      const watch = explaining(db, TABLES)
      const { events, now } = await fleetNews(watch.db, Date.parse('2030-01-01T05:33:20Z'))
      expect(now).toBe(Date.parse('2030-01-01T05:33:20Z'))
      // Five seconds back: what began before and committed since is told again.
      const told = (name: string) => events.filter(event => event.name === name).length
      expect([told('job.dead'), told('group.new'), told('desk.changed'), told('recovery.finished')]).toEqual([
        5, 5, 5, 5,
      ])
      expect(watch.scanned()).toEqual([])
      expect(watch.rows()).toBeLessThan(1_000)
    })

    it('more than is told one by one is told as missed, the newest of them one by one', async () => {
      const { events } = await fleetNews(db, Date.parse('2030-01-01T05:00:00Z'))
      const missed = events.filter(({ name }) => name === 'missed').map(({ about }) => (about as { of: string }).of)
      expect(missed).toEqual(expect.arrayContaining(['job.dead', 'desk.changed', 'group.new']))
      expect(events.filter(({ name }) => name === 'job.dead')).toHaveLength(100)
      const times = events.map(({ at }) => at)
      expect(times).toEqual([...times].sort())
      expect(JSON.stringify(events).length).toBeLessThan(200_000)
    })
  },
)
