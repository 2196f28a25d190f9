// What it takes to explain where a job is, besides the job itself: its line, its worker, who could take it, its last
// attempts. Each part is one look into an index.
import type { DecisionType } from '../domain/decision.js'
import type { Kind } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { OutcomeType } from '../domain/outcome.js'
import { type Queryable, sql } from './database.js'
import { millis, optional } from './rows.js'

/** Times are milliseconds of the database's clock. */
export interface Surroundings {
  readonly now: number
  /** Workers with a live session that take jobs from its queue. */
  readonly workers: number
  /** Whether any worker ever announced its name in its queue. */
  readonly known: boolean
  /** Of the same name, ahead of it in line; up to `AHEAD_UP_TO`. */
  readonly ahead: number
  /** Who runs it. */
  readonly running?: { readonly worker: string; readonly leaseEndsAt: number; readonly ended: boolean }
  /** The rate limit it is held for. */
  readonly rateLimit?: { readonly name: string; readonly key: string }
}

export const AHEAD_UP_TO = 1_000

const SURROUNDINGS = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS now),
  j AS MATERIALIZED (SELECT queue, name, line, in_line, state, session_id, held_by FROM redrive.job WHERE id = $2::uuid)
  SELECT ${millis('clock.now')} AS now,
    (SELECT count(*) FROM redrive.session s WHERE s.ended_at IS NULL AND s.expires_at > clock.now
       AND EXISTS (SELECT FROM json_array_elements_text(s.queues) q WHERE q = $3)) AS workers,
    EXISTS (SELECT FROM redrive.job_type t WHERE t.queue = $3 AND t.name = $4) AS known,
    CASE WHEN j.state = 'waiting' THEN (SELECT count(*) FROM (
      SELECT FROM redrive.job a WHERE a.queue = j.queue AND a.name = j.name AND a.in_line AND a.line < j.line
        AND a.state = 'waiting' ORDER BY a.queue, a.name, a.line LIMIT (SELECT $5::integer)) a) ELSE 0 END AS ahead,
    s.worker, ${millis('s.expires_at')} AS lease_ends_at, s.ended_at IS NOT NULL AS ended, j.held_by
  FROM clock LEFT JOIN j ON true LEFT JOIN redrive.session s ON s.id = j.session_id`

export async function surroundings(
  db: Queryable,
  { id, queue, name }: { readonly id: JobId; readonly queue: string; readonly name: string },
): Promise<Surroundings> {
  type Row = Record<'workers' | 'ahead', string | number> & {
    now: number
    known: boolean
    worker: string | null
    lease_ends_at: number
    ended: boolean
    held_by: string | null
  }
  const [row] = await db.query<Row>(SURROUNDINGS, [db.now(), id, queue, name, AHEAD_UP_TO])
  if (!row) throw new Error('the ledger gave no answer')
  const [limit = '', ...key] = row.held_by?.split('\n') ?? []
  return {
    now: row.now,
    workers: Number(row.workers),
    known: row.known,
    ahead: Number(row.ahead),
    ...(row.worker !== null && {
      running: { worker: row.worker, leaseEndsAt: row.lease_ends_at, ended: row.ended },
    }),
    ...(row.held_by !== null && { rateLimit: { name: limit, key: key.join('\n') } }),
  }
}

export interface AttemptBrief {
  readonly number: number
  /** 0 for the job's first life, 1 after its first redrive, … */
  readonly round: number
  readonly outcome: OutcomeType
  readonly decision: DecisionType
  readonly reason: string
  readonly kind?: Kind
  readonly because?: string
  readonly message?: string
  readonly at: number
}

const RECENT = sql`
  SELECT number, round, outcome, decision, reason, kind, because, left(message, 1000) AS message,
    ${millis('finished_at')} AS at
  FROM redrive.attempt WHERE job_id = $1::uuid ORDER BY lease DESC LIMIT $2::integer`

/** The last attempts on record, newest first, without what only a programmer reads. */
export async function recentAttempts(db: Queryable, id: JobId, limit: number): Promise<AttemptBrief[]> {
  type Row = Omit<AttemptBrief, 'kind' | 'because' | 'message'> &
    Record<'because' | 'message', string | null> & {
      kind: Kind | null
    }
  const rows = await db.query<Row>(RECENT, [id, limit])
  return rows.map(({ kind, because, message, ...row }) => ({
    ...row,
    ...optional('kind', kind),
    ...optional('because', because),
    ...optional('message', message),
  }))
}
