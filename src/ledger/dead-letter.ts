// Dead letters as they are read: one, with all that is known of it, or a page of those that match a filter.
import type { Cause, Kind } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { Json } from '../domain/json.js'
import type { RecoveryStatus } from '../domain/lifecycle.js'
import type { OutcomeType } from '../domain/outcome.js'
import { type Queryable, sql } from './database.js'
import { millis, optional, toDate, toJson } from './rows.js'

export interface DeadLetter {
  /** The dead job's own id. */
  readonly id: JobId
  readonly queue: string
  readonly name: string
  readonly payload: Json
  readonly status: RecoveryStatus
  /** Why it was buried, in words. */
  readonly reason: string
  readonly kind: Kind
  /** Why its last failure was classified so. */
  readonly because: string
  readonly outcome: OutcomeType
  readonly errorType: string
  readonly errorCode?: string
  readonly message: string
  readonly stack?: string
  readonly causes: readonly Cause[]
  readonly httpStatus?: number
  readonly service?: string
  readonly fingerprint: string
  /** Over all its lives. */
  readonly totalAttempts: number
  readonly maxAttempts?: number
  readonly lost: number
  /** How often it was sent back to run. */
  readonly recoveryAttempts: number
  readonly jobPriority: number
  readonly uniqueKey?: string
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly notes?: string
  readonly assignedTo?: string
  /** How urgent it is to the people who look after it, 0–10. */
  readonly priority: number
  readonly resolution?: string
  readonly createdAt: Date
  readonly diedAt: Date
  readonly updatedAt: Date
  readonly redrivenAt?: Date
  readonly resolvedAt?: Date
}

/** Which dead letters. Times bound when they died. `text` is looked for, as it is, in message and job name. */
export interface DeadLetterFilter {
  readonly queue?: string
  readonly name?: string
  readonly kind?: Kind
  readonly service?: string
  readonly status?: RecoveryStatus
  readonly fingerprint?: string
  readonly assignedTo?: string
  readonly since?: Date
  readonly until?: Date
  readonly text?: string
}

const COLUMNS = `id, seq, queue, name, payload::text AS payload, status, reason, kind, because, outcome, error_type, error_code,
  message, stack, causes::text AS causes, http_status, service, fingerprint, total_attempts, max_attempts, lost,
  recovery_attempts, job_priority, unique_key, tenant, user_id, project, notes, assigned_to, priority, resolution,
  ${millis('job_created_at')} AS created_at, ${millis('died_at')} AS died_at, ${millis('updated_at')} AS updated_at,
  ${millis('redriven_at')} AS redriven_at, ${millis('resolved_at')} AS resolved_at`

/** Takes $1 … $10, in the order of `filterParams`. */
export const MATCHES = `
  ($1::text IS NULL OR queue = $1) AND ($2::text IS NULL OR name = $2)
  AND ($3::redrive.failure_kind IS NULL OR kind = $3::redrive.failure_kind)
  AND ($4::text IS NULL OR service = $4)
  AND ($5::redrive.recovery_status IS NULL OR status = $5::redrive.recovery_status)
  AND ($6::text IS NULL OR fingerprint = $6) AND ($7::text IS NULL OR assigned_to = $7)
  AND ($8::timestamptz IS NULL OR died_at >= $8::timestamptz) AND ($9::timestamptz IS NULL OR died_at < $9::timestamptz)
  AND ($10::text IS NULL OR strpos(lower(message), lower($10)) > 0 OR strpos(lower(name), lower($10)) > 0)`

export const filterParams = (filter: DeadLetterFilter): (string | null)[] => [
  filter.queue ?? null,
  filter.name ?? null,
  filter.kind ?? null,
  filter.service ?? null,
  filter.status ?? null,
  filter.fingerprint ?? null,
  filter.assignedTo ?? null,
  filter.since?.toISOString() ?? null,
  filter.until?.toISOString() ?? null,
  filter.text ?? null,
]

const PAGE = sql`
  SELECT ${COLUMNS} FROM redrive.dead_letter
  WHERE ${MATCHES} AND ($11::bigint IS NULL OR seq < $11::bigint)
  ORDER BY seq DESC LIMIT $12::integer OFFSET $13::integer`

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Give it back as `cursor` for the next page; undefined after the last one. */
  readonly nextCursor?: string
}

/** Newest death first. */
export async function listDeadLetters(
  db: Queryable,
  filter: DeadLetterFilter,
  page: { limit: number; cursor?: string; offset?: number },
): Promise<Page<DeadLetter>> {
  const params = [...filterParams(filter), page.cursor ?? null, page.limit + 1, page.offset ?? 0]
  const rows = await db.query<Row>(PAGE, params)
  const items = rows.slice(0, page.limit)
  const last = items.at(-1)
  return {
    items: items.map(toDeadLetter),
    ...(rows.length > page.limit && last ? { nextCursor: String(last.seq) } : {}),
  }
}

const COUNT = sql`SELECT count(*) AS count FROM (SELECT FROM redrive.dead_letter WHERE ${MATCHES} LIMIT $11::integer) matching`

/** How many match, counted up to `upTo`. */
export async function countDeadLetters(db: Queryable, filter: DeadLetterFilter, upTo: number): Promise<number> {
  const [row] = await db.query<{ count: string | number }>(COUNT, [...filterParams(filter), upTo])
  return Number(row?.count)
}

const ONE = sql`SELECT ${COLUMNS} FROM redrive.dead_letter WHERE id = $1::uuid`

export async function getDeadLetter(db: Queryable, id: JobId): Promise<DeadLetter | undefined> {
  const [row] = await db.query<Row>(ONE, [id])
  return row && toDeadLetter(row)
}

const STATISTICS = sql`
  SELECT queue, status, kind, count(*) AS count FROM redrive.dead_letter GROUP BY queue, status, kind
  ORDER BY queue, status, kind`

export interface DeadLetterCount {
  readonly queue: string
  readonly status: RecoveryStatus
  readonly kind: Kind
  readonly count: number
}

export async function deadLetterCounts(db: Queryable): Promise<DeadLetterCount[]> {
  const rows = await db.query<Omit<DeadLetterCount, 'count'> & { count: string | number }>(STATISTICS)
  return rows.map(row => ({ ...row, count: Number(row.count) }))
}

type Text = string | null
interface Row {
  id: JobId
  seq: string | number
  queue: string
  name: string
  payload: string
  status: RecoveryStatus
  reason: string
  kind: Kind
  because: string
  outcome: OutcomeType
  error_type: string
  error_code: Text
  message: string
  stack: Text
  causes: Text
  http_status: number | null
  service: Text
  fingerprint: string
  total_attempts: number
  max_attempts: number | null
  lost: number
  recovery_attempts: number
  job_priority: number
  unique_key: Text
  tenant: Text
  user_id: Text
  project: Text
  notes: Text
  assigned_to: Text
  priority: number
  resolution: Text
  created_at: number
  died_at: number
  updated_at: number
  redriven_at: number | null
  resolved_at: number | null
}

const toDeadLetter = (row: Row): DeadLetter => ({
  id: row.id,
  queue: row.queue,
  name: row.name,
  payload: toJson(row.payload),
  status: row.status,
  reason: row.reason,
  kind: row.kind,
  because: row.because,
  outcome: row.outcome,
  errorType: row.error_type,
  message: row.message,
  causes: (toJson(row.causes) ?? []) as unknown as Cause[],
  fingerprint: row.fingerprint,
  totalAttempts: row.total_attempts,
  lost: row.lost,
  recoveryAttempts: row.recovery_attempts,
  jobPriority: row.job_priority,
  priority: row.priority,
  createdAt: toDate(row.created_at),
  diedAt: toDate(row.died_at),
  updatedAt: toDate(row.updated_at),
  ...optional('errorCode', row.error_code),
  ...optional('stack', row.stack),
  ...optional('httpStatus', row.http_status),
  ...optional('service', row.service),
  ...optional('maxAttempts', row.max_attempts),
  ...optional('uniqueKey', row.unique_key),
  ...optional('tenant', row.tenant),
  ...optional('user', row.user_id),
  ...optional('project', row.project),
  ...optional('notes', row.notes),
  ...optional('assignedTo', row.assigned_to),
  ...optional('resolution', row.resolution),
  ...optional('redrivenAt', row.redriven_at === null ? null : toDate(row.redriven_at)),
  ...optional('resolvedAt', row.resolved_at === null ? null : toDate(row.resolved_at)),
})
