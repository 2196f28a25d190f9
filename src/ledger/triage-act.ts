// What a triage rule does about some dead letters, in one transaction: the act, its count on each letter, and an audit row
// for each. INVARIANT: a letter that is not open, or for which the rule has done all that it may, is left alone, whoever
// runs the rules at the same time.
import type { JobId } from '../domain/ids.js'
import type { ReadyRule, TriageLetter } from '../domain/triage.js'
import { type Database, sql } from './database.js'
import { batchOf, redriveMany } from './redrive.js'
import { listOf } from './rows.js'
import { wakeChannel } from './wake-channel.js'

// `$4` discards with this reason; `$5` assigns; `$6` sets the priority. What stays open is looked at again by the next run,
// which begins later.
const ACT = sql`
  WITH asked AS MATERIALIZED (
    SELECT id, assigned_to, priority, coalesce((triaged ->> $2)::integer, 0) AS times FROM redrive.dead_letter
    WHERE id = ANY ($1::uuid[]) AND (status = 'pending' AND coalesce((triaged ->> $2)::integer, 0) < $3::integer) IS TRUE
    ORDER BY id FOR UPDATE SKIP LOCKED
  ), done AS (
    UPDATE redrive.dead_letter d
    SET triaged = coalesce(d.triaged, '{}') || jsonb_build_object($2::text, coalesce((d.triaged ->> $2)::integer, 0) + 1),
        triage_at = CASE WHEN $4::text IS NULL THEN coalesce($7::timestamptz, now()) + interval '1 millisecond' END,
        status = CASE WHEN $4::text IS NULL THEN d.status ELSE 'permanently_failed' END,
        resolution = coalesce($4, d.resolution),
        resolved_at = CASE WHEN $4::text IS NOT NULL THEN coalesce($7::timestamptz, now()) END,
        assigned_to = coalesce($5, d.assigned_to), priority = coalesce($6::smallint, d.priority),
        updated_at = coalesce($7::timestamptz, now())
    WHERE d.id = ANY (ARRAY(SELECT id FROM asked))
  ), noted AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, before, after, reason)
    SELECT coalesce($7::timestamptz, now()), $8, $9, 'dead_letter', id::text,
      json_build_object('status', 'pending', 'assignedTo', assigned_to, 'priority', priority),
      ($10::jsonb || jsonb_build_object('times', times + 1))::json, $4 FROM asked
  )
  SELECT id FROM asked`

export interface TriageActed {
  readonly ids: readonly JobId[]
  /** Of a retry: left open, because another live job holds their unique key. */
  readonly conflicts: readonly JobId[]
  /** That have work now. */
  readonly queues: ReadonlySet<string>
}

export function actOn(db: Database, rule: ReadyRule, letters: readonly TriageLetter[]): Promise<TriageActed> {
  const { action } = rule
  return db.transaction(async tx => {
    const rows = await tx.query<{ id: JobId }>(ACT, [
      listOf(letters.map(({ id }) => id)),
      rule.id,
      rule.maxPerLetter,
      action.type === 'discard' ? action.reason : null,
      action.type === 'assign' ? action.to : null,
      action.type === 'prioritise' ? action.priority : null,
      tx.now(),
      `triage rule ${rule.name}`,
      `triage ${action.type}`,
      JSON.stringify(action),
    ])
    const ids = rows.map(({ id }) => id)
    if (action.type !== 'retry' || ids.length === 0) return { ids, conflicts: [], queues: new Set<string>() }
    const { conflicts, queues } = await redriveMany(tx, batchOf(ids), wakeChannel(db))
    return { ids, conflicts, queues }
  })
}
