// What people who live in psql rely on: the views of the contract, their columns, and what they say after a small story.
import { describe, expect, it } from 'vitest'
import type { JobId, SessionId } from '../../src/domain/ids.js'
import type { Database } from '../../src/ledger/database.js'
import { annotate, markFailed } from '../../src/ledger/dead-letter-change.js'
import { enqueue } from '../../src/ledger/enqueue.js'
import { ensureQueues, pauseQueue } from '../../src/ledger/queue.js'
import { finishRun, startRun } from '../../src/ledger/recovery-run.js'
import { redrive } from '../../src/ledger/redrive.js'
import { settle } from '../../src/ledger/settle.js'
import { beforeFirst, DATABASES, type TestClock } from '../support/databases.js'
import { aFailure, aJob, aSession, buried, completed, retried, take } from '../support/story.js'

const VIEWS: Readonly<Record<string, string>> = {
  queue_statistics: 'queue_name waiting_count active_count completed_count failed_count retryable_count',
  dead_letter_queue_summary: 'queue_name total_failed_jobs pending_recovery recovered permanently_failed',
  failed_jobs:
    'id job_id job_type status attempts max_attempts last_error error_stacktrace input_data created_at updated_at',
  queue_retry_log:
    'job_id queue_name attempt_number outcome kind error_message retry_delay_ms next_retry_at created_at',
  queue_recovery_runs: 'id started_at finished_at status error',
  dead_letter_queue:
    'original_job_id original_queue_name original_job_data failure_reason total_attempts recovery_status recovery_attempts admin_notes assigned_to priority created_at',
}

const START = '2026-05-01T08:00:00.000Z'

describe.each(DATABASES.filter(({ kind }) => kind === 'memory' || kind === 'server'))('$name', ({ open }) => {
  let db: Database
  let clock: TestClock
  let session: SessionId
  const ids: JobId[] = []
  const [recovered, hopeless, waitingForRetry, done, running] = [0, 1, 2, 3, 4]

  const read = (view: string, rest = '') =>
    db.query<Record<string, unknown>>({ text: `SELECT * FROM redrive.${view} ${rest}` })
  const one = async (view: string, column: string, job: number) =>
    (await read(view, `WHERE ${column} = '${ids[job]}'`))[0]
  const time = (value: unknown) => (value as Date | null)?.toISOString()

  beforeFirst(async () => {
    const fresh = await open({ now: START })
    db = fresh.db
    clock = fresh.clock
    await ensureQueues(db, ['mail', 'idle'])
    const jobs = Array.from({ length: 5 }, (_, number) =>
      aJob({ payloadText: JSON.stringify({ number }), maxAttempts: 3, service: 'smtp' }),
    )
    ids.push(...jobs.map(job => job.id))
    await enqueue(db, jobs, null)
    session = await aSession(db, 86_400_000)
    clock.advance(1_000)
    const held = await take(db, session)
    const job = (index: number) => held[index] as (typeof held)[number]
    clock.advance(1_000)
    const failure = aFailure({
      kind: 'network',
      message: 'connection reset',
      stack: 'Error: connection reset\n  at send',
    })
    await settle(
      db,
      [
        buried(job(recovered), failure, 'network: attempt 3 of 3'),
        buried(job(hopeless), failure, 'network: attempt 3 of 3'),
        retried(job(waitingForRetry), 30_000, failure),
        completed(job(done), { key: 'x' }),
      ],
      '16',
    )
    await annotate(db, ids[hopeless] as JobId, { notes: 'asked the provider', assignedTo: 'ada', priority: 9 })
    clock.advance(1_000)
    await markFailed(db, ids[hopeless] as JobId, 'the address does not exist')
  })

  it.each(Object.entries(VIEWS))('%s has the columns of the contract', async (view, columns) => {
    const rows = await db.query<{ name: string }>({
      text: `SELECT attname::text AS name FROM pg_attribute WHERE attrelid = 'redrive.${view}'::regclass AND attnum > 0`,
    })
    expect(rows.map(row => row.name)).toEqual(expect.arrayContaining(columns.split(' ')))
  })

  it('queue_statistics tells where every job is, and lists a queue that has none', async () => {
    const rows = await read('queue_statistics', 'ORDER BY queue_name')
    expect(rows.map(row => [row.queue_name, Number(row.waiting_count)])).toEqual([
      ['idle', 0],
      ['mail', 0],
    ])
    const mail = rows[1] ?? {}
    expect(Number(mail.active_count)).toBe(1)
    expect(Number(mail.completed_count)).toBe(1)
    expect(Number(mail.failed_count)).toBe(2)
    expect(Number(mail.retryable_count)).toBe(1)
    expect(mail.paused).toBe(false)
  })

  it('failed_jobs has one row for a job that died, with all that is known of it', async () => {
    const row = await one('failed_jobs', 'job_id', recovered)
    expect(row).toMatchObject({
      id: ids[recovered],
      job_type: 'send',
      status: 'pending',
      attempts: 1,
      max_attempts: 3,
      last_error: 'connection reset',
      error_stacktrace: 'Error: connection reset\n  at send',
      input_data: { number: 0 },
    })
    expect(time(row?.created_at)).toBe('2026-05-01T08:00:02.000Z')
    expect(time((await one('failed_jobs', 'job_id', hopeless))?.updated_at)).toBe('2026-05-01T08:00:03.000Z')
    expect(await one('failed_jobs', 'job_id', waitingForRetry)).toBeUndefined()
  })

  it('queue_retry_log has every attempt that failed, with the wait that was chosen', async () => {
    const row = await one('queue_retry_log', 'job_id', waitingForRetry)
    expect(row).toMatchObject({
      queue_name: 'mail',
      attempt_number: 1,
      outcome: 'failed',
      kind: 'network',
      error_message: 'connection reset',
    })
    expect(Number(row?.retry_delay_ms)).toBe(30_000)
    expect(time(row?.next_retry_at)).toBe('2026-05-01T08:00:32.000Z')
    expect(await read('queue_retry_log')).toHaveLength(3)
  })

  it('dead_letter_queue has what people added', async () => {
    expect(await one('dead_letter_queue', 'original_job_id', hopeless)).toMatchObject({
      original_queue_name: 'mail',
      original_job_data: { number: 1 },
      failure_reason: 'network: attempt 3 of 3',
      total_attempts: 1,
      recovery_status: 'permanently_failed',
      recovery_attempts: 0,
      admin_notes: 'asked the provider',
      assigned_to: 'ada',
      priority: 9,
    })
  })

  it('a redriven job is followed from dead to recovered', async () => {
    const summary = async () => {
      const [row = {}] = await read('dead_letter_queue_summary')
      const { queue_name, ...counts } = row
      return Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, Number(count)]))
    }
    expect(await summary()).toMatchObject({
      total_failed_jobs: 2,
      pending_recovery: 1,
      recovered: 0,
      permanently_failed: 1,
    })

    await redrive(db, [ids[recovered] as JobId], null)
    expect(await one('dead_letter_queue', 'original_job_id', recovered)).toMatchObject({
      recovery_status: 'redriving',
      recovery_attempts: 1,
    })
    expect(await summary()).toMatchObject({ total_failed_jobs: 2, pending_recovery: 0, redriving: 1 })

    await settle(
      db,
      (await take(db, session)).map(job => completed(job)),
      '16',
    )
    expect(await one('dead_letter_queue', 'original_job_id', recovered)).toMatchObject({ recovery_status: 'recovered' })
    expect(await summary()).toMatchObject({ total_failed_jobs: 2, recovered: 1, permanently_failed: 1 })
    const [mail = {}] = await read('queue_statistics', "WHERE queue_name = 'mail'")
    expect([Number(mail.completed_count), Number(mail.failed_count)]).toEqual([2, 1])
    expect(await one('queue_retry_log', 'job_id', done), 'a plain success is no retry').toBeUndefined()
    expect(await one('failed_jobs', 'job_id', running)).toBeUndefined()
  })

  it('queue_recovery_runs has each run with its duration; a paused queue shows', async () => {
    const run = await startRun(db, 'demand', 'worker-1')
    clock.advance(250)
    await finishRun(
      db,
      run?.id ?? '',
      { rescued: 1, promoted: 2, buried: 3, triaged: 0, cleaned: 4, expired: 5 },
      'half done',
    )
    const [row] = await read('queue_recovery_runs')
    expect(row).toMatchObject({
      cause: 'demand',
      status: 'failed',
      rescued: 1,
      promoted: 2,
      buried: 3,
      error: 'half done',
    })
    expect(Number(row?.duration_ms)).toBe(250)
    await pauseQueue(db, 'idle', 'ada')
    expect((await read('queue_statistics', "WHERE queue_name = 'idle'"))[0]).toMatchObject({ paused: true })
  })
})
