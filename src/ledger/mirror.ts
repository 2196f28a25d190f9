// Which open dead letters are shown in a queue of a broker, and which are shown there and should not be any more.
import type { JobId, Lease } from '../domain/ids.js'
import { type Queryable, sql } from './database.js'
import { listOf, millis, payloadOf } from './rows.js'

export interface LetterToShow {
  readonly id: JobId
  /** The death it is shown for. */
  readonly lease: Lease
  readonly queue: string
  readonly name: string
  readonly payloadText: string
  readonly kind: string
  readonly reason: string
  readonly attempts: number
  readonly diedAt: number
}

const TO_SHOW = sql`
  SELECT d.id, d.lease, d.queue, d.name, ${payloadOf('d')} AS payload, d.kind::text AS kind, left(d.reason, 500) AS reason,
    d.total_attempts, ${millis('d.died_at')} AS died_at
  FROM redrive.dead_letter d
  WHERE d.queue IN (SELECT json_array_elements_text($1::json)) AND d.status = 'pending'
    AND d.died_at >= coalesce(to_timestamp($2::double precision / 1000), '-infinity')
    AND NOT EXISTS (SELECT FROM redrive.mirrored_letter m WHERE m.id = d.id)
  ORDER BY d.died_at, d.seq LIMIT $3::integer`

/** Open letters of these queues that are not shown, oldest first. `since`: only those that died then or later. */
export async function lettersToShow(
  db: Queryable,
  queues: readonly string[],
  since: number | null,
  limit: number,
): Promise<LetterToShow[]> {
  type Row = Record<'id' | 'lease' | 'queue' | 'name' | 'payload' | 'kind' | 'reason', string>
  type Numbers = { total_attempts: number; died_at: number }
  const rows = await db.query<Row & Numbers>(TO_SHOW, [JSON.stringify(queues), since, limit])
  return rows.map(row => ({
    id: row.id as JobId,
    lease: String(row.lease) as Lease,
    queue: row.queue,
    name: row.name,
    payloadText: row.payload,
    kind: row.kind,
    reason: row.reason,
    attempts: Number(row.total_attempts),
    diedAt: Number(row.died_at),
  }))
}

const SHOWN = sql`
  INSERT INTO redrive.mirrored_letter (id, mirror, lease, at)
  SELECT id, $1, lease, coalesce($3::timestamptz, now()) FROM json_to_recordset($2::json) AS t(id uuid, lease bigint)
  ON CONFLICT (id) DO UPDATE SET mirror = excluded.mirror, lease = excluded.lease, at = excluded.at`

export async function noteShown(db: Queryable, mirror: string, letters: readonly LetterToShow[]): Promise<void> {
  await db.query(SHOWN, [mirror, JSON.stringify(letters.map(({ id, lease }) => ({ id, lease }))), db.now()])
}

const GONE = sql`
  SELECT m.id FROM redrive.mirrored_letter m LEFT JOIN redrive.dead_letter d ON d.id = m.id
  WHERE m.mirror = $1 AND (d.id IS NULL OR d.status <> 'pending' OR d.lease <> m.lease)
  ORDER BY m.at LIMIT $2::integer`

/** Shown, and not open any more, or open for another death. */
export async function lettersGone(db: Queryable, mirror: string, limit: number): Promise<JobId[]> {
  return (await db.query<{ id: JobId }>(GONE, [mirror, limit])).map(({ id }) => id)
}

const OPEN = sql`
  SELECT m.id FROM redrive.mirrored_letter m JOIN redrive.dead_letter d ON d.id = m.id
  WHERE m.id = ANY ($1::uuid[]) AND d.status = 'pending' AND d.lease = m.lease`

/** Which of these are rightly shown. */
export async function rightlyShown(db: Queryable, ids: readonly JobId[]): Promise<Set<JobId>> {
  if (ids.length === 0) return new Set()
  return new Set((await db.query<{ id: JobId }>(OPEN, [listOf(ids)])).map(({ id }) => id))
}

const FORGET = sql`DELETE FROM redrive.mirrored_letter WHERE id = ANY ($1::uuid[])`

export async function forgetShown(db: Queryable, ids: readonly JobId[]): Promise<void> {
  if (ids.length > 0) await db.query(FORGET, [listOf(ids)])
}
