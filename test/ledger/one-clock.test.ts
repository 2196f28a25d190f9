// Invariant 5: one clock, the database's, and every statement that depends on time takes another `now` for tests.
// Shown twice: no statement asks for the time by itself, and a story played in another year leaves no trace of today.
import { readdir, readFile } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import type { JobId } from '../../src/domain/ids.js'
import { writeAudit } from '../../src/ledger/audit.js'
import { cancelJob } from '../../src/ledger/cancel.js'
import { claim, orphans } from '../../src/ledger/claim.js'
import { type Database, sql } from '../../src/ledger/database.js'
import { annotate, markFailed } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { announceJobTypes } from '../../src/ledger/job-type.js'
import { setPolicy } from '../../src/ledger/policy.js'
import { promote } from '../../src/ledger/promote.js'
import { pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { finishRun, showLife, startRun } from '../../src/ledger/recovery-run.js'
import { redrive } from '../../src/ledger/redrive.js'
import { ensureHistoryDays, expireDeadLetters } from '../../src/ledger/retention.js'
import { endSession, lapseSessions, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { recordStale, settle } from '../../src/ledger/settle.js'
import { DATABASES } from '../support/databases.js'
import { aFailure, aJob, aSession, buried, cancelled, completed, ended, retried, take } from '../support/story.js'

const LEDGER = new URL('../../src/ledger/', import.meta.url)

/** Where the time may be asked for without a way to set it, and why. */
const EXCEPTIONS: readonly { readonly file: string; readonly text: RegExp; readonly why: string }[] = [
  {
    file: 'migrations/0001_foundation.sql',
    text: /^\s*(?:created_at|updated_at|announced_at)\s+timestamptz NOT NULL DEFAULT now\(\),?$/,
    why: 'when a queue or job type was first heard of: nothing is decided by it',
  },
  {
    file: 'migrate.ts',
    text: /applied_at timestamptz NOT NULL DEFAULT now\(\)$/,
    why: 'when a migration was applied: for people only, and there is no story to replay before it',
  },
  {
    file: 'doctor.ts',
    text: /clock_timestamp\(\)/,
    why: "what the server's own clock says is the question, and the ages of its transactions are by that clock",
  },
]

const ASKS =
  /(?<![.\w])(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday)\(\)(?!:)|\b(?:current_timestamp|current_date|current_time|localtimestamp|localtime)\b/gi
/** What stands before it where the caller's `now` comes first. */
const SETTABLE = /coalesce\((?:(?:[\w.]+, )?\$\d+::timestamptz|at), $/

async function asksForTime(): Promise<string[]> {
  const files = (await readdir(LEDGER, { recursive: true })).filter(
    name => name.endsWith('.ts') || /migrations.*\.sql$/.test(name),
  )
  const found: string[] = []
  for (const file of files.sort()) {
    const text = await readFile(new URL(file, LEDGER), 'utf8')
    for (const [index, line] of text.split('\n').entries()) {
      if (/^\s*(?:\/\/|--|\*|\/\*)/.test(line)) continue
      if (EXCEPTIONS.some(exception => exception.file === file && exception.text.test(line))) continue
      for (const match of line.matchAll(ASKS)) {
        if (!SETTABLE.test(line.slice(0, match.index))) found.push(`${file}:${index + 1} ${line.trim()}`)
      }
    }
  }
  return found
}

it('no statement asks for the time by itself', async () => {
  expect(await asksForTime()).toEqual([])
})

it('every exception is still there', async () => {
  for (const { file, text } of EXCEPTIONS) {
    const lines = (await readFile(new URL(file, LEDGER), 'utf8')).split('\n')
    expect(
      lines.some(line => text.test(line)),
      file,
    ).toBe(true)
  }
})

const TIMES = sql`
  SELECT c.oid::regclass::text AS "table", a.attname::text AS "column" FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
  WHERE c.relnamespace = to_regnamespace('redrive_schema_name') AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND a.atttypid IN ('timestamptz'::regtype, 'date'::regtype) AND a.attnum > 0 ORDER BY 1, 2`

/** Columns filled by a DDL default; see EXCEPTIONS. */
const BY_DEFAULT = ['queue.created_at', 'queue.updated_at', 'migration.applied_at']

/** Every step that writes a time, long before or after today. */
async function story(db: Database, advance: (ms: number) => void): Promise<void> {
  await ensureHistoryDays(db, 1)
  await announceJobTypes(db, [{ name: 'send', queue: 'mail', service: null, policy: {}, settings: {} }])
  await setPolicy(db, { scope: 'queue', target: 'mail' }, { policy: { attempts: 2 }, setBy: 'ada' })
  await pauseQueue(db, 'paused', 'ada')
  await pauseQueue(db, 'resumed', 'ada')
  await resumeQueue(db, 'resumed', null)
  const jobs = Array.from({ length: 8 }, () => aJob())
  await enqueue(db, jobs, null)
  await enqueue(db, [aJob({ delayMs: 5_000 }), aJob({ uniqueKey: 'k' })], null)
  const session = await aSession(db, 10_000)
  advance(1_000)
  const [a, b, c, d, e, f, g, h] = await take(db, session, 8)
  if (!(a && b && c && d && e && f && g && h)) throw new Error('eight jobs were to be claimed')
  await renewSession(db, session, 10_000)
  await settle(db, [completed(a), retried(b), buried(c), buried(d), buried(e), cancelled(f)], '16')
  await cancelJob(db, g.id, 'asked')
  advance(11_000)
  expect((await promote(db, 100, null)).promoted, 'what is due by the set time').toBe(2)
  await cancelJob(db, b.id, 'no more')
  await annotate(db, d.id, { notes: 'n' })
  await markFailed(db, d.id, 'hopeless')
  await redrive(db, [c.id, e.id] as JobId[], null)
  const run = await startRun(db, 'schedule', 'w')
  await showLife(db, run?.id ?? '')
  expect((await lapseSessions(db)).lapsed, 'its lease is over by the set time').toHaveLength(1)
  expect(await claim(db, session, [{ queue: 'mail', name: 'send', limit: 10 }], 10)).toEqual([])
  const lost = (await orphans(db, await sessionsToSearch(db), 10)).map(job =>
    ended(job, { type: 'lost', failure: aFailure({ kind: 'lost' }) }, { type: 'retry', delayMs: 0, reason: 'again' }),
  )
  expect(lost).toHaveLength(2)
  await settle(db, lost, '0')
  await recordStale(db, [completed(h)])
  await finishRun(db, run?.id ?? '', { rescued: 2, promoted: 0, buried: 0, triaged: 0, cleaned: 0, expired: 0 }, null)
  const next = await aSession(db, 10_000)
  await take(db, next)
  await endSession(db, next)
  await writeAudit(db, { actor: 'ada', action: 'look', targetType: 'job', target: a.id })
  advance(60_000)
  expect(await expireDeadLetters(db, 1_000, 100), 'resolved long ago by the set time').toBe(1)
}

describe.each(DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server'))('$name', ({ open }) => {
  it.each(['1999-12-31T23:30:00.000Z', '2040-02-29T12:00:00.000Z'])(
    'a story of %s has no trace of today',
    async start => {
      const { db, clock } = await open({ now: start })
      await story(db, ms => clock.advance(ms))
      const strangers: string[] = []
      for (const { table, column } of await db.query<{ table: string; column: string }>(TIMES)) {
        const name = `${table.replace(/.*\./, '')}.${column}`
        if (BY_DEFAULT.includes(name)) continue
        const text = `SELECT ${column}::text AS time FROM ${table} WHERE abs(extract(epoch FROM ${column}::timestamptz - $1::timestamptz)) > 172800`
        for (const row of await db.query<{ time: string }>({ text }, [start])) strangers.push(`${name} ${row.time}`)
      }
      expect(strangers).toEqual([])
    },
  )
})
