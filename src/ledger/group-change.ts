// What a person changes on groups: status, owner, notes; merging and splitting. History stays as it is: dead letters and
// attempts keep their fingerprints, and a merged group only points to the one that speaks for it. Groups are locked in the
// order of their keys.
import type { GroupStatus } from '../domain/group.js'
import { type Queryable, sql } from './database.js'
import { members } from './group-members.js'

export interface GroupChange {
  readonly status?: GroupStatus
  /** Null takes it away; undefined leaves it. */
  readonly assignee?: string | null
  readonly priority?: number
  readonly notes?: string | null
}

/** Without what differs between them, so that a change and what it changed can be compared. */
export interface GroupBefore {
  readonly status: GroupStatus
  readonly assignee: string | null
  readonly priority: number
  readonly notes: string | null
}

export interface LockedGroup extends GroupBefore {
  readonly id: string
  readonly mergedInto: string | null
  readonly version: number
}

const LOCK = sql`
  SELECT fingerprint AS id, merged_into AS "mergedInto", version, status, assignee, priority, notes
  FROM redrive.failure_group
  WHERE fingerprint = ANY (ARRAY(SELECT json_array_elements_text($1::json))) ORDER BY fingerprint FOR UPDATE`

/** For as long as the transaction takes, nobody else changes them. */
export const lockGroups = (tx: Queryable, ids: readonly string[]): Promise<LockedGroup[]> =>
  tx.query<LockedGroup>(LOCK, [JSON.stringify(ids)])

const CHANGE = sql`
  UPDATE redrive.failure_group
  SET status = coalesce($2::redrive.group_status, status),
      resolved_at = CASE WHEN coalesce($2::redrive.group_status, status) <> 'resolved' THEN NULL
        WHEN status = 'resolved' THEN resolved_at ELSE coalesce($8::timestamptz, now()) END,
      resolved_by = CASE WHEN coalesce($2::redrive.group_status, status) <> 'resolved' THEN NULL
        WHEN status = 'resolved' THEN resolved_by ELSE $9 END,
      regressed_at = CASE WHEN $2::redrive.group_status IN ('resolved', 'muted') THEN NULL ELSE regressed_at END,
      regressed_version = CASE WHEN $2::redrive.group_status IN ('resolved', 'muted') THEN NULL ELSE regressed_version END,
      assignee = CASE WHEN $3::boolean THEN $4 ELSE assignee END,
      notes = CASE WHEN $5::boolean THEN $6 ELSE notes END,
      priority = coalesce($7::smallint, priority), version = version + 1, updated_at = coalesce($8::timestamptz, now())
  WHERE fingerprint = $1`

export async function changeGroup(tx: Queryable, id: string, change: GroupChange, actor: string): Promise<void> {
  const { status, assignee, notes, priority } = change
  await tx.query(CHANGE, [
    id,
    status ?? null,
    assignee !== undefined,
    assignee ?? null,
    notes !== undefined,
    notes ?? null,
    priority ?? null,
    tx.now(),
    actor,
  ])
}

const POINT = sql`
  UPDATE redrive.failure_group
  SET merged_into = $2, version = version + 1, updated_at = coalesce($3::timestamptz, now())
  WHERE fingerprint = ANY (ARRAY(SELECT json_array_elements_text($1::json)))`

/** Makes them point to `into`, or, with null, stand for themselves again. */
export async function pointGroups(tx: Queryable, ids: readonly string[], into: string | null): Promise<void> {
  await tx.query(POINT, [JSON.stringify(ids), into, tx.now()])
}

// What a group counts is what its members failed: known from the tally whenever they change.
const RECOUNT = sql`
  UPDATE redrive.failure_group g
  SET last_seen = total.last_at, failures = total.failures, deaths = total.deaths, version = version + 1,
      updated_at = coalesce($2::timestamptz, now())
  FROM (
    SELECT max(t.last_at) AS last_at, sum(t.failures) AS failures, sum(t.deaths) AS deaths
    FROM ${members('$1')}
    CROSS JOIN LATERAL (SELECT * FROM redrive.failure_tally t WHERE t.fingerprint = member.id OFFSET 0) t
  ) total
  WHERE g.fingerprint = $1 AND total.last_at IS NOT NULL`

export async function recountGroup(tx: Queryable, id: string): Promise<void> {
  await tx.query(RECOUNT, [id, tx.now()])
}
