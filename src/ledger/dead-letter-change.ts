// What a person changes on a dead letter: closing it for good, notes, removal. Each returns what it was before, for
// the audit, and undefined when there was nothing to change.
import type { JobId } from '../domain/ids.js'
import { type Queryable, sql } from './database.js'

const MARK_FAILED = sql`
  UPDATE redrive.dead_letter d
  SET status = 'permanently_failed', resolution = $2, resolved_at = coalesce($3::timestamptz, now()),
      updated_at = coalesce($3::timestamptz, now())
  FROM (SELECT id, status FROM redrive.dead_letter WHERE id = $1::uuid AND status = 'pending' FOR UPDATE) was
  WHERE d.id = was.id RETURNING was.status`

export async function markFailed(db: Queryable, id: JobId, reason: string): Promise<{ status: string } | undefined> {
  return (await db.query<{ status: string }>(MARK_FAILED, [id, reason, db.now()]))[0]
}

export interface Annotation {
  /** Null takes the text away; undefined leaves it. */
  readonly notes?: string | null
  readonly assignedTo?: string | null
  readonly priority?: number
}

export interface AnnotatedBefore {
  readonly notes: string | null
  readonly assignedTo: string | null
  readonly priority: number
}

const ANNOTATE = sql`
  UPDATE redrive.dead_letter d
  SET notes = CASE WHEN $2::boolean THEN $3 ELSE d.notes END,
      assigned_to = CASE WHEN $4::boolean THEN $5 ELSE d.assigned_to END,
      priority = coalesce($6::smallint, d.priority), updated_at = coalesce($7::timestamptz, now())
  FROM (SELECT id, notes, assigned_to, priority FROM redrive.dead_letter WHERE id = $1::uuid FOR UPDATE) was
  WHERE d.id = was.id RETURNING was.notes, was.assigned_to AS "assignedTo", was.priority`

export async function annotate(db: Queryable, id: JobId, change: Annotation): Promise<AnnotatedBefore | undefined> {
  const { notes, assignedTo, priority } = change
  const params = [
    id,
    notes !== undefined,
    notes ?? null,
    assignedTo !== undefined,
    assignedTo ?? null,
    priority ?? null,
    db.now(),
  ]
  return (await db.query<AnnotatedBefore>(ANNOTATE, params))[0]
}

// INVARIANT: a dead letter whose job is live again is never removed.
const REMOVE = sql`
  WITH removed AS (
    DELETE FROM redrive.dead_letter
    WHERE id = ANY (ARRAY(SELECT value::uuid FROM json_array_elements_text($1::json))) AND status <> 'redriving'
    RETURNING id
  ), forgotten AS (
    DELETE FROM redrive.attempt WHERE job_id = ANY (ARRAY(SELECT id FROM removed))
      AND NOT EXISTS (SELECT FROM redrive.finished_job f WHERE f.id = job_id)
  ), emptied AS (
    DELETE FROM redrive.payload p WHERE p.id = ANY (ARRAY(SELECT id FROM removed))
      AND NOT EXISTS (SELECT FROM redrive.finished_job f WHERE f.id = p.id)
  )
  SELECT id FROM removed`

/** Removes dead letters with their attempts and payloads; returns the ids that were removed. */
export async function removeDeadLetters(db: Queryable, ids: readonly JobId[]): Promise<JobId[]> {
  return (await db.query<{ id: JobId }>(REMOVE, [JSON.stringify(ids)])).map(row => row.id)
}
