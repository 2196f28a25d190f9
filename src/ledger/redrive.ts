// Sends dead letters back to run, one statement for one or thousands. INVARIANT: the dead letter stays, as
// `redriving`, until its job has ended; one whose unique key a live job holds is left open and reported (pitfall 4); one
// whose job was sent back and then cancelled has ended for good (its redrives are not its recovery attempts).
import type { JobId } from '../domain/ids.js'
import type { RecoveryStatus } from '../domain/lifecycle.js'
import { type AuditEntry, reasonOf } from './audit.js'
import { hot, type Queryable, sql } from './database.js'
import { FREEZE, FREEZE_IN_BATCHES, filterParams, PREVIEW, type Sought, searchOf } from './dead-letter-search.js'

const TAKEN = `id, died_at, seq, queue, name, job_priority, payload, job_created_at, max_attempts, redrives, unique_key,
    service, tenant, user_id, project`
const ASKED = 'id = ANY (ARRAY(SELECT unnest($1::uuid[])))'
const OPEN = `status IN ('pending', 'permanently_failed') AND redrives = recovery_attempts`
const MARK = `status = 'redriving', recovery_attempts = recovery_attempts + 1, redriven_at = coalesce($2::timestamptz, now()),
        updated_at = coalesce($2::timestamptz, now()), resolved_at = NULL, resolution = NULL`
const REVIVE = `
    INSERT INTO redrive.job (id, line, state, queue, name, priority, payload, run_at, created_at, max_attempts, redrives,
                             unique_key, service, tenant, user_id, project)
    SELECT id, redrive.line_of(job_priority, place), 'waiting', queue, name, job_priority, payload,
           coalesce($2::timestamptz, now()), job_created_at, max_attempts, redrives + 1, unique_key, service, tenant, user_id, project
    FROM asked`

// Only a unique key can be taken. Letters without one are marked and sent back in one go; those with one, if there may be
// any (`$5`), are locked, asked for a conflict, which is dear, and marked if there is none. Keys are taken in their own
// order, so that two who send back letters of the same keys do not wait for each other. Places in line are given (`$4`),
// or taken now. What decides is kept from the planner where it would choose by it: how many are asked for
// (`ARRAY(SELECT …)`), which of them are open (`IS TRUE`), and which of them came back (`IN` as a value is looked up in a
// hash table; as a condition it may become a loop over all pairs) (pitfall 24). Letters are marked by their id, not by
// their place: one that was changed while its lock was waited for is in a place that this statement's snapshot does not see.
//
// The answer is short: a row a queue, with those that stayed. Who asked knows the others, and their ids come back only where
// some were not open any more.
const redriving = (then = '') => sql`
  WITH keyless AS (
    UPDATE redrive.dead_letter SET ${MARK} WHERE ${ASKED} AND (${OPEN} AND unique_key IS NULL) IS TRUE RETURNING ${TAKEN}
  ), keyed AS MATERIALIZED (
    SELECT ${TAKEN} FROM redrive.dead_letter
    WHERE $5::boolean AND ${ASKED} AND (${OPEN} AND unique_key IS NOT NULL) IS TRUE FOR UPDATE
  ), asked AS MATERIALIZED (
    SELECT *, coalesce(($4::bigint[])[n], nextval('redrive.job_seq')) AS place
    FROM (
      SELECT *, row_number() OVER (ORDER BY died_at, seq) AS n
      FROM (SELECT * FROM keyless UNION ALL SELECT * FROM keyed) open
    ) numbered
  ), revived AS (${REVIVE} WHERE unique_key IS NULL
  ), revived_by_key AS (${REVIVE} WHERE unique_key IS NOT NULL ORDER BY queue, unique_key, n
    ON CONFLICT DO NOTHING RETURNING id
  ), marked AS (
    UPDATE redrive.dead_letter SET ${MARK} WHERE id = ANY (ARRAY(SELECT id FROM revived_by_key))
  ), answer AS MATERIALIZED (
    SELECT queue, count(*) FILTER (WHERE redriven) AS went, count(*) FILTER (WHERE NOT redriven) AS stayed,
      string_agg(id::text, ',') FILTER (WHERE NOT redriven) AS conflicts,
      string_agg(id::text, ',') FILTER (WHERE redriven AND (SELECT count(*) FROM asked) < cardinality($1::uuid[])) AS redriven
    FROM (SELECT id, queue, unique_key IS NULL OR id IN (SELECT id FROM revived_by_key) AS redriven FROM asked) each
    GROUP BY queue
  )${then}
  SELECT queue, went::integer AS went, conflicts, redriven,
    CASE WHEN $3::text IS NOT NULL AND went > 0 THEN pg_notify($3, queue) END AS woken
  FROM answer`

const REDRIVE = redriving()
/** With its entry in the audit, `$6` … `$10`: a transaction of its own that is one statement. */
const REDRIVE_AUDITED = redriving(`, audited AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, reason, after)
    SELECT coalesce($2::timestamptz, now()), $6, $7, $8, $9, $10,
      json_build_object('redriven', coalesce(sum(went), 0), 'conflicts', coalesce(sum(stayed), 0))
    FROM answer
  )`)

/** The same for letters without a key, with their places: a function, which numbers nothing and is planned once (0025_send_back.sql). */
const SEND_BACK_AUDITED = hot(sql`
  WITH back AS MATERIALIZED (
    SELECT * FROM redrive.send_back($2::timestamptz, $1::uuid[], $4::bigint[])
  ), audited AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, reason, after)
    SELECT coalesce($2::timestamptz, now()), $5, $6, $7, $8, $9,
      json_build_object('redriven', coalesce(sum(went), 0), 'conflicts', 0)
    FROM back
  )
  SELECT went_to AS queue, went::integer AS went, NULL AS conflicts,
    CASE WHEN (SELECT sum(went) FROM back) < cardinality($1::uuid[]) THEN array_to_string(gone, ',') END AS redriven,
    CASE WHEN $3::text IS NOT NULL THEN pg_notify($3, went_to) END AS woken
  FROM back`)

export interface RedriveResult {
  readonly redriven: readonly JobId[]
  /** Left as they are: another live job holds their unique key. */
  readonly conflicts: readonly JobId[]
}

/** Ids that are not open dead letters are in neither list. */
export async function redrive(db: Queryable, ids: readonly JobId[], channel: string | null): Promise<RedriveResult> {
  const { redriven, conflicts } = await redriveMany(db, batchOf(ids), channel)
  return { redriven, conflicts }
}

/** Letters to send back in one statement. */
export interface RedriveBatch {
  /** With commas between them. */
  readonly ids: string
  /** In line, one for each; null: the next ones there are. */
  readonly places: string | null
  /** False: none of them has a unique key. */
  readonly keyed: boolean
}

/** One of a set that was frozen, with its places. */
export interface FrozenBatch extends RedriveBatch {
  readonly places: string
}

export const batchOf = (ids: readonly JobId[]): RedriveBatch => ({ ids: ids.join(','), places: null, keyed: true })

interface Went {
  readonly queue: string
  readonly went: number
  readonly conflicts: string | null
  readonly redriven: string | null
}

/** The same, and which queues have work now. */
export async function redriveMany(
  db: Queryable,
  { ids, places, keyed }: RedriveBatch,
  channel: string | null,
): Promise<RedriveResult & { readonly queues: ReadonlySet<string> }> {
  return resultOf(ids, await db.query<Went>(REDRIVE, [`{${ids}}`, db.now(), channel, places, keyed]))
}

/** A batch that was frozen, as a transaction of its own. `entry`: written to the audit with how many went, and how many did not. */
export async function sendBack(
  db: Queryable,
  { ids, places, keyed }: FrozenBatch,
  channel: string | null,
  entry: AuditEntry,
): Promise<RedriveResult & { readonly queues: ReadonlySet<string> }> {
  const sent = [`{${ids}}`, db.now(), channel, places]
  const rows = keyed
    ? await db.query<Went>(REDRIVE_AUDITED, [...sent, keyed, ...auditParams(entry)])
    : await db.query<Went>(SEND_BACK_AUDITED, [...sent, ...auditParams(entry)])
  return resultOf(ids, rows)
}

function resultOf(ids: string, rows: readonly Went[]): RedriveResult & { readonly queues: ReadonlySet<string> } {
  const asked = idsOf(ids)
  const conflicts = rows.flatMap(row => idsOf(row.conflicts))
  const went = rows.reduce((sum, row) => sum + row.went, 0)
  const stayed = new Set(conflicts)
  const redriven =
    went + conflicts.length === asked.length
      ? asked.filter(id => !stayed.has(id))
      : rows.flatMap(row => idsOf(row.redriven))
  return { redriven, conflicts, queues: new Set(rows.filter(row => row.went > 0).map(row => row.queue)) }
}

const auditParams = ({ actor, action, targetType, target, reason }: AuditEntry) =>
  [actor, action, targetType, target, reasonOf(reason)] as const

const idsOf = (text: string | null) => (text ? text.split(',') : []) as JobId[]

type Frozen = Sought & { readonly status: RecoveryStatus; readonly diedBeforeMs?: number }

// However many there are to look at (null): what is left out would silently not be redriven.
const frozenParams = (db: Queryable, filter: Frozen, limit: number) =>
  [...filterParams(filter), null, limit, filter.diedBeforeMs ?? null, db.now()] as const

/** The ids that match now, oldest first: a set that later arrivals do not join (pitfall 7). */
export async function freeze(db: Queryable, filter: Frozen, limit: number): Promise<JobId[]> {
  const { lead } = await searchOf(db, filter)
  const rows = await db.query<{ id: JobId }>(FREEZE[lead], frozenParams(db, filter, limit))
  return rows.map(row => row.id)
}

/** The same, ready to be sent back in batches of `size`. */
export async function freezeInBatches(
  db: Queryable,
  filter: Frozen,
  limit: number,
  size: number,
): Promise<FrozenBatch[]> {
  const { lead } = await searchOf(db, filter)
  type Row = { ids: string | null; places: string | null; keyed: boolean }
  const [row] = await db.query<Row>(FREEZE_IN_BATCHES[lead], [...frozenParams(db, filter, limit), size])
  const places = row?.places?.split(';')
  return (row?.ids?.split(';') ?? []).map((ids, n) => ({ ids, places: `{${places?.[n]}}`, keyed: row?.keyed === true }))
}

/** How many that would be. */
export async function preview(db: Queryable, filter: Frozen, limit: number): Promise<number> {
  const { lead } = await searchOf(db, filter)
  const [row] = await db.query<{ count: string | number }>(PREVIEW[lead], frozenParams(db, filter, limit))
  return Number(row?.count)
}
