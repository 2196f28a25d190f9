// The database mirrors the domain: the same words in its enums, the same states in its tables, and no row that the
// lifecycle does not know.
import { describe, expect, it } from 'vitest'
import { DECISIONS } from '../../src/domain/decision.js'
import { KINDS } from '../../src/domain/failure.js'
import { newJobId } from '../../src/domain/ids.js'
import { FINISHED_STATES, LIVE_STATES, RECOVERY_STATUSES, STATES } from '../../src/domain/lifecycle.js'
import { OUTCOMES } from '../../src/domain/outcome.js'
import type { Database, Param } from '../../src/ledger/database.js'
import { beforeFirst, DATABASES } from '../support/databases.js'

const NOW = '2026-01-01T00:00:00Z'
const CHECK_VIOLATION = '23514'

type Columns = Readonly<Record<string, Param>>

const job = (columns: Columns = {}): Columns => ({
  id: newJobId(),
  state: 'waiting',
  in_line: ['waiting', 'active'].includes(String(columns.state ?? 'waiting')),
  queue: 'mail',
  name: 'send',
  payload: '{}',
  run_at: NOW,
  created_at: NOW,
  ...columns,
})
const leased = { state: 'active', lease: 1, session_id: 1, claimed_at: NOW }

const finishedJob = (columns: Columns = {}): Columns => ({
  id: newJobId(),
  queue: 'mail',
  name: 'send',
  payload: '{}',
  created_at: NOW,
  finished_at: NOW,
  attempt: 1,
  snoozes: 0,
  holds: 0,
  interruptions: 0,
  lost: 0,
  redrives: 0,
  priority: 5,
  ...columns,
})

const attempt = (columns: Columns = {}): Columns => ({
  job_id: newJobId(),
  lease: 1,
  number: 1,
  round: 0,
  finished_at: NOW,
  outcome: 'failed',
  decision: 'retry',
  kind: 'transient',
  message: 'busy',
  queue: 'mail',
  name: 'send',
  reason: 'again',
  ...columns,
})

const deadLetter = (columns: Columns = {}): Columns => ({
  id: newJobId(),
  lease: 1,
  died_at: NOW,
  updated_at: NOW,
  job_created_at: NOW,
  total_attempts: 1,
  lost: 0,
  redrives: 0,
  job_priority: 5,
  outcome: 'failed',
  kind: 'transient',
  queue: 'mail',
  name: 'send',
  payload: '{}',
  reason: 'over',
  message: 'busy',
  fingerprint: 'v1:x',
  ...columns,
})

const session = (columns: Columns = {}): Columns => ({
  worker: 'w',
  host: 'h',
  pid: 1,
  queues: '[]',
  concurrency: 1,
  started_at: NOW,
  renewed_at: NOW,
  expires_at: NOW,
  ...columns,
})

const run = (columns: Columns = {}): Columns => ({
  cause: 'schedule',
  worker: 'w',
  started_at: NOW,
  alive_at: NOW,
  ...columns,
})

describe.each(DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server'))('$name', ({ open }) => {
  let db: Database
  beforeFirst(async () => {
    db = (await open()).db
  })

  const insert = (table: string, columns: Columns) => {
    const names = Object.keys(columns)
    const places = names.map((_, index) => `$${index + 1}`)
    return db.query(
      { text: `INSERT INTO redrive.${table} (${names}) VALUES (${places}) RETURNING 1` },
      Object.values(columns),
    )
  }

  it.each([
    ['job_state', STATES],
    ['failure_kind', KINDS],
    ['attempt_outcome', OUTCOMES],
    ['decision', DECISIONS],
    ['recovery_status', RECOVERY_STATUSES],
  ])('the enum %s has the words of the domain, in its order', async (name, words) => {
    const [row] = await db.query<{ words: string }>({
      text: `SELECT array_to_json(enum_range(NULL::redrive.${name}))::text AS words`,
    })
    expect(JSON.parse(row?.words ?? '')).toEqual(words)
  })

  it.each(STATES)('a %s job is where the lifecycle says', async state => {
    const live = insert('job', job(state === 'active' ? leased : { state }))
    if ((LIVE_STATES as readonly string[]).includes(state)) await expect(live).resolves.toHaveLength(1)
    else await expect(live).rejects.toMatchObject({ code: CHECK_VIOLATION })

    const finished = insert('finished_job', finishedJob({ state }))
    if ((FINISHED_STATES as readonly string[]).includes(state)) await expect(finished).resolves.toHaveLength(1)
    else await expect(finished).rejects.toMatchObject({ code: CHECK_VIOLATION })
  })

  it.each<[string, string, Columns]>([
    ['a waiting job with a lease', 'job', job({ lease: 1 })],
    ['a waiting job held by a session', 'job', job({ session_id: 1 })],
    ['an active job without a lease', 'job', job({ ...leased, lease: null })],
    ['an active job of no session', 'job', job({ ...leased, session_id: null })],
    ['an active job that was never claimed', 'job', job({ ...leased, claimed_at: null })],
    ...['attempt', 'snoozes', 'holds', 'interruptions', 'lost'].map(
      counter =>
        [`a job with a negative count of ${counter}`, 'job', job({ [counter]: -1 })] as [string, string, Columns],
    ),
    ['a job of priority -1', 'job', job({ priority: -1 })],
    ['a job of priority 11', 'job', job({ priority: 11 })],
    ['a failed attempt without its kind', 'attempt', attempt({ kind: null })],
    ['a lost attempt without its message', 'attempt', attempt({ outcome: 'lost', message: null })],
    ['a pending dead letter that was resolved', 'dead_letter', deadLetter({ resolved_at: NOW })],
    ['a redriving dead letter that was resolved', 'dead_letter', deadLetter({ status: 'redriving', resolved_at: NOW })],
    ['a recovered dead letter without its time', 'dead_letter', deadLetter({ status: 'recovered' })],
    ['a failed dead letter without its time', 'dead_letter', deadLetter({ status: 'permanently_failed' })],
    ['a dead letter of priority 11', 'dead_letter', deadLetter({ priority: 11 })],
    ['a session that ended without saying how', 'session', session({ ended_at: NOW })],
    ['a session that ended by magic', 'session', session({ ended_at: NOW, ended_by: 'magic' })],
    ['a run for no known cause', 'recovery_run', run({ cause: 'whim' })],
    ['a run that finished and is running', 'recovery_run', run({ finished_at: NOW })],
    ['a run that succeeded without an end', 'recovery_run', run({ status: 'succeeded' })],
    ['a run that ended otherwise', 'recovery_run', run({ status: 'so-so', finished_at: NOW })],
  ])('%s cannot be stored', async (_what, table, columns) => {
    await expect(insert(table, columns)).rejects.toMatchObject({ code: CHECK_VIOLATION })
  })

  it('the rows those differ from are fine', async () => {
    for (const [table, columns] of [
      ['job', job({ ...leased, lease: 2 })],
      ['attempt', attempt()],
      ['attempt', attempt({ outcome: 'snoozed', decision: 'return', kind: null, message: null })],
      ['dead_letter', deadLetter()],
      ['dead_letter', deadLetter({ status: 'recovered', resolved_at: NOW })],
      ['session', session({ ended_at: NOW, ended_by: 'lapsed' })],
      ['recovery_run', run()],
      ['recovery_run', run({ status: 'failed', finished_at: NOW })],
    ] as const) {
      await expect(insert(table, columns), table).resolves.toHaveLength(1)
    }
  })

  it('one live job a queue and unique key', async () => {
    await insert('job', job({ unique_key: 'k' }))
    await insert('job', job({ unique_key: 'k', queue: 'other' }))
    await expect(insert('job', job({ unique_key: 'k' }))).rejects.toMatchObject({ code: '23505' })
  })
})
