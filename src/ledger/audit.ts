// Who changed what, from what to what, and why. Every change by a person writes one row, in the same transaction.
import type { Json } from '../domain/json.js'
import { cap, LIMITS } from '../domain/limits.js'
import { type Queryable, sql } from './database.js'
import type { Count } from './dead-letter.js'
import { millis, toDate, toJson } from './rows.js'

export interface AuditEntry {
  readonly actor: string
  readonly action: string
  readonly targetType:
    | 'dead_letter'
    | 'queue'
    | 'job'
    | 'job_name'
    | 'group'
    | 'triage_rule'
    | 'service'
    | 'rate_limit'
    | 'recovery'
    | 'token'
    | 'request'
  readonly target: string
  readonly before?: Json
  readonly after?: Json
  readonly reason?: string
}

const WRITE = sql`
  INSERT INTO redrive.audit (at, actor, action, target_type, target, before, after, reason)
  VALUES (coalesce($1::timestamptz, now()), $2, $3, $4, $5, $6::json, $7::json, $8)`

const text = (value: Json | undefined) => (value === undefined ? null : JSON.stringify(value))

export const reasonOf = (reason: string | undefined): string | null =>
  reason === undefined ? null : cap(reason, LIMITS.reasonChars)

export async function writeAudit(db: Queryable, entry: AuditEntry): Promise<void> {
  const { actor, action, targetType, target, before, after, reason } = entry
  const why = reasonOf(reason)
  await db.query(WRITE, [db.now(), actor, action, targetType, target, text(before), text(after), why])
}

const READ = sql`
  SELECT id, ${millis('at')} AS at, actor, action, target_type, target, before::text AS before, after::text AS after, reason
  FROM redrive.audit
  WHERE ($1::text IS NULL OR (target_type = $1 AND target = $2)) AND ($3::bigint IS NULL OR id < $3::bigint)
  ORDER BY id DESC LIMIT $4::integer`

export interface AuditRecord extends AuditEntry {
  readonly id: string
  readonly at: Date
}

export async function readAudit(
  db: Queryable,
  filter: { targetType?: string; target?: string; before?: string; limit: number },
): Promise<AuditRecord[]> {
  const { targetType = null, target = null, before = null, limit } = filter
  const rows = await db.query<Record<string, string | null> & { at: number }>(READ, [targetType, target, before, limit])
  return rows.map(row => ({
    id: String(row.id),
    at: toDate(row.at),
    actor: row.actor as string,
    action: row.action as string,
    targetType: row.target_type as AuditEntry['targetType'],
    target: row.target as string,
    ...(row.before === null ? {} : { before: toJson(row.before as string) }),
    ...(row.after === null ? {} : { after: toJson(row.after as string) }),
    ...(row.reason === null ? {} : { reason: row.reason as string }),
  }))
}

const HOW_MANY = sql`
  SELECT count(*) AS entries FROM (
    SELECT FROM redrive.audit WHERE $1::text IS NULL OR (target_type = $1 AND target = $2) LIMIT $3::integer) a`

export async function countAudit(
  db: Queryable,
  { targetType = null, target = null }: { targetType?: string | null; target?: string | null },
  upTo: number,
): Promise<Count> {
  const [row] = await db.query<{ entries: string | number }>(HOW_MANY, [targetType, target, upTo + 1])
  const found = Number(row?.entries)
  return { value: Math.min(found, upTo), exact: found <= upTo }
}
