// Policies set at run time, for a queue or for a job name, with their versions. The newest version of a target holds.
import type { Json } from '../domain/json.js'
import { cap, LIMITS } from '../domain/limits.js'
import { type Queryable, sql } from './database.js'
import { millis, optional, toDate, toJson } from './rows.js'

export const POLICY_SCOPES = ['queue', 'job'] as const
export type PolicyScope = (typeof POLICY_SCOPES)[number]

/** Whose policy: of a queue, or of a job name in whatever queue. */
export interface PolicyTarget {
  readonly scope: PolicyScope
  readonly target: string
}

export interface PolicyVersion extends PolicyTarget {
  readonly version: number
  /** Null: with this version it was taken away. */
  readonly policy: Json
  readonly setAt: Date
  readonly setBy: string
  readonly reason?: string
}

/** So many versions of a target are kept; the audit has them all. */
export const VERSIONS_KEPT = 100
const MOST_TARGETS = 10_000

const COLUMNS = `p.scope, p.target, p.version, p.policy::text AS policy, ${millis('p.set_at')} AS set_at, p.set_by, p.reason`

// Two who set at once make the same version: one of them waits for the other, and then inserts nothing.
const SET = sql`
  INSERT INTO redrive.policy AS p (scope, target, version, policy, set_at, set_by, reason)
  SELECT $1, $2, last.version + 1, $3::json, coalesce($4::timestamptz, now()), $5, $6
  FROM (SELECT coalesce(max(version), 0) AS version FROM redrive.policy WHERE scope = $1 AND target = $2) last
  WHERE $7::integer IS NULL OR last.version = $7::integer
  ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`

const FORGET = sql`DELETE FROM redrive.policy WHERE scope = $1 AND target = $2 AND version <= $3::integer`

export interface PolicyChange {
  readonly policy: Json
  readonly setBy: string
  readonly reason?: string | undefined
  /** Only if this version holds now; 0: only if there never was one. */
  readonly expectedVersion?: number | undefined
}

/** Undefined: another version holds than the expected one, or somebody set one at this very moment. */
export async function setPolicy(
  db: Queryable,
  { scope, target }: PolicyTarget,
  { policy, setBy, reason, expectedVersion }: PolicyChange,
): Promise<PolicyVersion | undefined> {
  const text = policy === null ? null : JSON.stringify(policy)
  const why = reason === undefined ? null : cap(reason, LIMITS.reasonChars)
  const [row] = await db.query<Row>(SET, [scope, target, text, db.now(), setBy, why, expectedVersion ?? null])
  if (!row) return undefined
  if (row.version > VERSIONS_KEPT) await db.query(FORGET, [scope, target, row.version - VERSIONS_KEPT])
  return toVersion(row)
}

const OF_TARGETS = sql`
  SELECT p.* FROM json_to_recordset($1::json) AS t(scope text, target text)
  CROSS JOIN LATERAL (
    SELECT ${COLUMNS} FROM redrive.policy p WHERE p.scope = t.scope AND p.target = t.target ORDER BY p.version DESC LIMIT 1
  ) p`
const OF_ALL = sql`
  SELECT DISTINCT ON (p.scope, p.target) ${COLUMNS} FROM redrive.policy p
  ORDER BY p.scope, p.target, p.version DESC LIMIT $1::integer`

/** The newest version of each of these targets, or, without them, of all that ever had one. */
export async function newestPolicies(db: Queryable, targets?: readonly PolicyTarget[]): Promise<PolicyVersion[]> {
  const rows = targets
    ? await db.query<Row>(OF_TARGETS, [JSON.stringify(targets)])
    : await db.query<Row>(OF_ALL, [MOST_TARGETS])
  return rows.map(toVersion)
}

const HISTORY = sql`
  SELECT ${COLUMNS} FROM redrive.policy p WHERE p.scope = $1 AND p.target = $2 ORDER BY p.version DESC LIMIT $3::integer`

/** Newest first. */
export async function policyHistory(
  db: Queryable,
  { scope, target }: PolicyTarget,
  limit: number,
): Promise<PolicyVersion[]> {
  return (await db.query<Row>(HISTORY, [scope, target, limit])).map(toVersion)
}

interface Row {
  scope: PolicyScope
  target: string
  version: number
  policy: string | null
  set_at: number
  set_by: string
  reason: string | null
}

const toVersion = (row: Row): PolicyVersion => ({
  scope: row.scope,
  target: row.target,
  version: row.version,
  policy: toJson(row.policy),
  setAt: toDate(row.set_at),
  setBy: row.set_by,
  ...optional('reason', row.reason),
})
