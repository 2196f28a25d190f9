// Groups as they are read: a page of them, each with its counts.
import type { Kind } from '../domain/failure.js'
import type { GroupStatus } from '../domain/group.js'
import { type Queryable, type Statement, sql } from './database.js'
import type { Count, Page } from './dead-letter.js'
import { members } from './group-members.js'
import { millis, optional, toDate } from './rows.js'

export interface Group {
  /** The fingerprint of its failures. */
  readonly id: string
  /** The type and message of its first failure. */
  readonly title: string
  readonly kind: Kind
  readonly errorType?: string
  readonly service?: string
  readonly status: GroupStatus
  /** It was resolved, and failed again. */
  readonly regressed: boolean
  readonly regressedAt?: Date
  /** Of the worker that it failed in again. */
  readonly regressedVersion?: string
  readonly regressions: number
  readonly assignee?: string
  /** How urgent it is to the people who look after it, 0–10. */
  readonly priority: number
  readonly notes?: string
  readonly firstSeen: Date
  readonly lastSeen: Date
  /** Of the worker that it was first seen in. */
  readonly firstVersion?: string
  /** Attempts that failed of it, ever. */
  readonly failures: number
  /** Jobs that died of it, ever. */
  readonly deaths: number
  /** Dead letters that are open now. */
  readonly dead: Count
  /** Live jobs that wait for their next attempt after this failure. */
  readonly retrying: Count
  readonly resolvedAt?: Date
  readonly resolvedBy?: string
  readonly updatedAt: Date
  /** Counts its changes; say it with a change to make sure that nobody else made one meanwhile. */
  readonly version: number
}

export interface GroupFilter {
  readonly status?: GroupStatus
  readonly regressed?: boolean
  readonly kind?: Kind
  readonly service?: string
  readonly assignee?: string
  /** Failed in this queue. */
  readonly queue?: string
  /** In the title, as it is. */
  readonly text?: string
}

/** What comes first: the one that failed last, or the one that failed most. */
export const GROUP_SORTS = ['lastSeen', 'failures'] as const
export type GroupSort = (typeof GROUP_SORTS)[number]

/** Up to so many are counted for a group of a page. */
const COUNTED_IN_LIST = 1_000
/** So many groups are looked at for one page. */
const LOOKED_AT = 5_000

const COLUMNS = `g.fingerprint, g.title, g.kind, g.error_type, g.service, g.status, g.assignee, g.priority, g.notes,
  g.first_version, g.failures, g.deaths, g.resolved_by, g.regressed_version, g.regressions, g.version,
  ${millis('g.first_seen')} AS first_seen, ${millis('g.last_seen')} AS last_seen, ${millis('g.resolved_at')} AS resolved_at,
  ${millis('g.regressed_at')} AS regressed_at, ${millis('g.updated_at')} AS updated_at`

/** Open dead letters and waiting jobs of group `g`, up to `most`, each by its index. */
export const nowOf = (most: string): string => `
  (SELECT count(*) FROM ${members('g.fingerprint')} CROSS JOIN LATERAL (
    SELECT FROM redrive.dead_letter d WHERE d.fingerprint = member.id AND d.status = 'pending'
    ORDER BY d.died_at, d.seq LIMIT (SELECT ${most}::integer)) letter) AS dead,
  (SELECT count(*) FROM ${members('g.fingerprint')} CROSS JOIN LATERAL (
    SELECT FROM redrive.job j WHERE j.fingerprint = member.id AND NOT j.in_line
    ORDER BY j.fingerprint LIMIT (SELECT ${most}::integer)) job) AS retrying`

const SORTED: Readonly<Record<GroupSort, { column: string; place: string; after: string }>> = {
  lastSeen: {
    column: 'last_seen',
    place: '(extract(epoch FROM last_seen) * 1000000)::bigint',
    after: `timestamptz 'epoch' + $8::bigint * interval '1 microsecond'`,
  },
  failures: { column: 'failures', place: 'failures', after: '$8::bigint' },
}

/**
 * What of `looked` failed in the queue, itself or by what was merged into it. A correlated value, not EXISTS: that might be
 * answered by hashing the whole table.
 */
const IN_QUEUE = `
  in_queue AS MATERIALIZED (
    SELECT head FROM (
      SELECT fingerprint AS id, fingerprint AS head FROM looked
      UNION ALL SELECT fingerprint, merged_into FROM redrive.failure_group WHERE merged_into IS NOT NULL
    ) member
    WHERE $7::text IS NOT NULL
      AND (SELECT 1 FROM redrive.failure_tally t WHERE t.fingerprint = member.id AND t.queue = $7 LIMIT 1) IS NOT NULL
  )`

/** What of `looked` a filter lets through. */
const FITS = `
    WHERE ($1::redrive.group_status IS NULL OR status = $1::redrive.group_status)
      AND ($2::boolean IS NULL OR (regressed_at IS NOT NULL) = $2::boolean)
      AND ($3::redrive.failure_kind IS NULL OR kind = $3::redrive.failure_kind)
      AND ($4::text IS NULL OR service = $4) AND ($5::text IS NULL OR assignee = $5)
      AND ($6::text IS NULL OR strpos(lower(title), lower($6::text)) > 0)
      AND ($7::text IS NULL OR fingerprint IN (SELECT head FROM in_queue))`

// What is looked at comes in order, and no further than the page needs.
const pageBy = ({ column, place, after }: (typeof SORTED)[GroupSort]): Statement => sql`
  WITH looked AS MATERIALIZED (
    SELECT *, ${place} || '.' || fingerprint AS place FROM redrive.failure_group
    WHERE merged_into IS NULL AND ($8::bigint IS NULL OR (${column}, fingerprint) < (${after}, $9::text COLLATE "C"))
    ORDER BY ${column} DESC, fingerprint DESC LIMIT (SELECT $10::integer)
  ), ${IN_QUEUE}, found AS MATERIALIZED (
    SELECT * FROM looked${FITS}
    LIMIT $11::integer
  ), rest AS MATERIALIZED (
    SELECT place FROM looked
    LIMIT CASE WHEN (SELECT count(*) FROM found) < $11::integer THEN 1 ELSE 0 END OFFSET $10::integer - 1
  )
  SELECT page.*, (SELECT place FROM rest) AS rest FROM (SELECT) one LEFT JOIN (
    SELECT ${COLUMNS}, g.place, ${nowOf(String(COUNTED_IN_LIST + 1))}, row_number() OVER (ORDER BY g.${column} DESC, g.fingerprint DESC) AS nth
    FROM found g
  ) page ON true ORDER BY nth`

const PAGE: Readonly<Record<GroupSort, Statement>> = {
  lastSeen: pageBy(SORTED.lastSeen),
  failures: pageBy(SORTED.failures),
}

const HOW_MANY = sql`
  WITH looked AS MATERIALIZED (
    SELECT * FROM redrive.failure_group WHERE merged_into IS NULL
    ORDER BY last_seen DESC, fingerprint DESC LIMIT (SELECT $8::integer)
  ), ${IN_QUEUE}
  SELECT (SELECT count(*) FROM looked${FITS}) AS fit, (SELECT count(*) FROM looked) AS looked`

/** Of the groups that failed last: not exact when there are more of them than are looked at. */
export async function countGroups(db: Queryable, filter: GroupFilter): Promise<Count> {
  const [row] = await db.query<{ fit: Big; looked: Big }>(HOW_MANY, [...askedBy(filter), LOOKED_AT])
  return { value: Number(row?.fit), exact: Number(row?.looked) < LOOKED_AT }
}

const askedBy = ({ status, regressed, kind, service, assignee, text, queue }: GroupFilter) =>
  [status, regressed, kind, service, assignee, text, queue].map(value => value ?? null)

const CURSOR = /^(\d{1,18})\.(.{1,600})$/

export const isGroupCursor = (text: string): boolean => CURSOR.test(text)

export async function listGroups(
  db: Queryable,
  filter: GroupFilter,
  page: { limit: number; sort: GroupSort; cursor?: string },
): Promise<Page<Group>> {
  const asked = askedBy(filter)
  const [, place = null, fingerprint = null] = CURSOR.exec(page.cursor ?? '') ?? []
  const params = [...asked, place, fingerprint, LOOKED_AT, page.limit + 1]
  const rows = await db.query<GroupRow & { place: string; rest: string | null }>(PAGE[page.sort], params)
  const groups = rows.filter(row => row.fingerprint !== null)
  const items = groups.slice(0, page.limit)
  const next = (groups.length > page.limit ? items.at(-1)?.place : rows[0]?.rest) ?? null
  return { items: items.map(row => toGroup(row, COUNTED_IN_LIST)), ...optional('nextCursor', next) }
}

/** Up to so many are counted for a group that is looked at by itself. */
const COUNTED = 10_000

const ONE = sql`
  SELECT ${COLUMNS}, ${nowOf(String(COUNTED + 1))} FROM redrive.failure_group g WHERE g.fingerprint = (
    SELECT coalesce(merged_into, fingerprint) FROM redrive.failure_group WHERE fingerprint = $1)`

/** The group that this fingerprint belongs to. */
export async function getGroup(db: Queryable, id: string): Promise<Group | undefined> {
  const [row] = await db.query<GroupRow>(ONE, [id])
  return row && toGroup(row, COUNTED)
}

type Text = string | null
type Big = string | number
interface GroupRow {
  fingerprint: string
  title: string
  kind: Kind
  error_type: Text
  service: Text
  status: GroupStatus
  assignee: Text
  priority: number
  notes: Text
  first_version: Text
  failures: Big
  deaths: Big
  dead: Big
  retrying: Big
  resolved_by: Text
  regressed_version: Text
  regressions: number
  version: number
  first_seen: number
  last_seen: number
  resolved_at: number | null
  regressed_at: number | null
  updated_at: number
}

const countOf = (counted: Big, most: number): Count => ({
  value: Math.min(Number(counted), most),
  exact: Number(counted) <= most,
})

const toGroup = (row: GroupRow, most: number): Group => ({
  id: row.fingerprint,
  title: row.title,
  kind: row.kind,
  status: row.status,
  regressed: row.regressed_at !== null,
  regressions: row.regressions,
  priority: row.priority,
  firstSeen: toDate(row.first_seen),
  lastSeen: toDate(row.last_seen),
  failures: Number(row.failures),
  deaths: Number(row.deaths),
  dead: countOf(row.dead, most),
  retrying: countOf(row.retrying, most),
  version: row.version,
  updatedAt: toDate(row.updated_at),
  ...optional('errorType', row.error_type),
  ...optional('service', row.service),
  ...optional('assignee', row.assignee),
  ...optional('notes', row.notes),
  ...optional('firstVersion', row.first_version),
  ...optional('resolvedBy', row.resolved_by),
  ...optional('regressedVersion', row.regressed_version),
  ...optional('resolvedAt', row.resolved_at === null ? null : toDate(row.resolved_at)),
  ...optional('regressedAt', row.regressed_at === null ? null : toDate(row.regressed_at)),
})
