// Dead letters as they are read: one, with all that is known of it, or a page of those that match a filter.
import type { Cause, Kind } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { Json } from '../domain/json.js'
import type { RecoveryStatus } from '../domain/lifecycle.js'
import type { OutcomeType } from '../domain/outcome.js'
import { type Queryable, sql } from './database.js'
import {
  COUNT,
  COUNT_LEAD,
  filterParams,
  type Lead,
  pageOf,
  placeOf,
  SKIP,
  type Sought,
  searchOf,
} from './dead-letter-search.js'
import { millis, optional, payloadOf, toDate, toJson } from './rows.js'

export type { DeadLetterFilter } from './dead-letter-search.js'

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

/** Of a dead letter `d` and the attempt `a` it died of. */
const COLUMNS = `d.id, d.queue, d.name, ${payloadOf('d')} AS payload, d.status, d.reason, d.kind, a.because, d.outcome,
  a.error_type, a.error_code, d.message, a.stack, a.causes::text AS causes, d.http_status, d.service, d.fingerprint,
  d.total_attempts, d.max_attempts, d.lost, d.recovery_attempts, d.job_priority, d.unique_key, d.tenant, d.user_id,
  d.project, d.notes, d.assigned_to, d.priority, d.resolution, ${millis('d.job_created_at')} AS created_at,
  ${millis('d.died_at')} AS died_at, ${millis('d.updated_at')} AS updated_at,
  ${millis('d.redriven_at')} AS redriven_at, ${millis('d.resolved_at')} AS resolved_at`
const LETTER = `redrive.dead_letter d LEFT JOIN redrive.attempt a ON a.job_id = d.id AND a.lease = d.lease`

const PAGE = pageOf(`
  SELECT letter.*, (SELECT rest FROM rest) AS rest
  FROM (SELECT) one LEFT JOIN (
    SELECT ${COLUMNS}, ${placeOf('d')} AS place, d.died_at AS death, d.seq
    FROM ${LETTER} WHERE d.ctid = ANY (ARRAY(SELECT spot FROM found))
  ) letter ON true
  ORDER BY letter.death DESC, letter.seq DESC`)

/** So many letters are looked at for one page, or to tell how many match: more would make somebody wait. */
const LOOKED_AT = 5_000

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Give it back as `cursor` for the next page; undefined after the last one. A page can be short and have a next. */
  readonly nextCursor?: string
}

/** Where a page begins: the cursor of the one before, taken apart. */
const CURSOR = /^(\d{1,18})\.(\d{1,18})$/

export const isCursor = (text: string): boolean => CURSOR.test(text)

export interface Count {
  readonly value: number
  /** False: there are at least so many. */
  readonly exact: boolean
}

/**
 * Newest death first. What the leading part of the filter does not answer is asked of `LOOKED_AT` letters at most: a page
 * of rare ones is short then, and its cursor goes on where this one ended. `total`: if the page happens to tell.
 */
export async function listDeadLetters(
  db: Queryable,
  filter: Sought,
  page: { limit: number; cursor?: string; offset?: number },
): Promise<Page<DeadLetter> & { readonly total?: Count }> {
  const search = await searchOf(db, filter)
  const { limit, cursor, offset = 0 } = page
  const skipped = search.whole && offset > 0
  const from = skipped ? await skip(db, filter, search.lead, offset, cursor) : cursor
  if (skipped && from === undefined) return { items: [] }
  const left = skipped ? 0 : offset
  const params = [...filterParams(filter), LOOKED_AT + left, ...placeParams(from), limit + 1, left]
  const rows = await db.query<Row & { place: string; rest: Text }>(PAGE[search.lead], params)
  const letters = rows.filter(row => row.id !== null)
  const items = letters.slice(0, limit)
  const nextCursor = (letters.length > limit ? items.at(-1)?.place : rows[0]?.rest) ?? null
  const tells = cursor === undefined && offset === 0 && letters.length <= limit
  return {
    items: items.map(toDeadLetter),
    ...optional('nextCursor', nextCursor),
    ...optional('total', tells ? { value: items.length, exact: nextCursor === null } : null),
  }
}

async function skip(db: Queryable, filter: Sought, lead: Lead, offset: number, cursor?: string) {
  const [row] = await db.query<{ place: string }>(SKIP[lead], [...filterParams(filter), offset, ...placeParams(cursor)])
  return row?.place
}

const placeParams = (cursor: string | undefined): [micros: string | null, seq: string | null] => {
  const [, micros = null, seq = null] = CURSOR.exec(cursor ?? '') ?? []
  return [micros, seq]
}

/** How many match, up to `upTo`; for a filter that one index does not answer, as far as looking at some tells. */
export async function countDeadLetters(db: Queryable, filter: Sought, upTo: number): Promise<Count> {
  const { lead, whole } = await searchOf(db, filter)
  const most = whole ? upTo : Math.min(upTo, LOOKED_AT)
  type Counted = { looked_at: string | number; matching: string | number }
  const [row] = await db.query<Counted>((whole ? COUNT_LEAD : COUNT)[lead], [...filterParams(filter), most + 1])
  return { value: Math.min(Number(row?.matching), most), exact: Number(row?.looked_at) <= most }
}

const ONE = sql`SELECT ${COLUMNS} FROM ${LETTER} WHERE d.id = $1::uuid`

export async function getDeadLetter(db: Queryable, id: JobId): Promise<DeadLetter | undefined> {
  const [row] = await db.query<Row>(ONE, [id])
  return row && toDeadLetter(row)
}

type Text = string | null
interface Row {
  id: JobId
  queue: string
  name: string
  payload: string
  status: RecoveryStatus
  reason: string
  kind: Kind
  because: Text
  outcome: OutcomeType
  error_type: Text
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

/** Of an attempt that somebody deleted by hand. */
const UNKNOWN = 'unknown'

const toDeadLetter = (row: Row): DeadLetter => ({
  id: row.id,
  queue: row.queue,
  name: row.name,
  payload: toJson(row.payload),
  status: row.status,
  reason: row.reason,
  kind: row.kind,
  because: row.because ?? UNKNOWN,
  outcome: row.outcome,
  errorType: row.error_type ?? UNKNOWN,
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
