// Which dead letters, newest death first, without reading more of them than a page needs (pitfalls 19 and 24).
//
// One part of a filter leads: it has an index that goes on with status and time of death. What the filter leaves open
// there (a status, a kind) is a branch each, and the branches are merged in the order of death. The rest of the filter is
// asked of each letter in that order, and of no more than `$11` of them. The text is constant: the planner drops the
// branches that are not asked for, and reads each of the others from its index, whether or not it has statistics. A limit
// that it does not know (`LIMIT (SELECT …)`) keeps it from sorting what an index has in order.
import { KINDS, type Kind } from '../domain/failure.js'
import { MOST_MERGED } from '../domain/group.js'
import { RECOVERY_STATUSES, type RecoveryStatus } from '../domain/lifecycle.js'
import { type Queryable, type Statement, sql } from './database.js'
import { listOf } from './rows.js'

/** Which dead letters. Times bound when they died. `text` is looked for, as it is, in message and job name. */
export interface DeadLetterFilter {
  readonly queue?: string
  readonly name?: string
  readonly kind?: Kind
  readonly service?: string
  readonly status?: RecoveryStatus
  readonly fingerprint?: string
  /** Of this group, with what was merged into it. */
  readonly group?: string
  readonly assignedTo?: string
  readonly since?: Date
  readonly until?: Date
  readonly text?: string
}

/** A filter whose group is known by the fingerprints that belong to it. */
export type Sought = Omit<DeadLetterFilter, 'group'> & { readonly fingerprints?: readonly string[] }

const fingerprintsOf = ({ fingerprint, fingerprints }: Sought): string | null => {
  const texts = fingerprints ?? (fingerprint === undefined ? undefined : [fingerprint])
  return texts === undefined ? null : listOf(texts.map(text => `"${text.replace(/["\\]/g, '\\$&')}"`))
}

/** `$1` … `$10`, in the order of MATCHES. */
export const filterParams = (filter: Sought): (string | null)[] => [
  filter.queue ?? null,
  filter.name ?? null,
  filter.kind ?? null,
  filter.service ?? null,
  filter.status ?? null,
  fingerprintsOf(filter),
  filter.assignedTo ?? null,
  filter.since?.toISOString() ?? null,
  filter.until?.toISOString() ?? null,
  filter.text ?? null,
]

// Most texts are ASCII, and folding only ASCII is several times faster; every other text is folded by the database's rules.
const CONTAINS = (column: string) => `
  CASE WHEN octet_length($10) = char_length($10)
       THEN strpos(lower(${column} COLLATE "C"), lower($10::text COLLATE "C"))
       ELSE strpos(lower(${column} COLLATE "default"), lower($10::text COLLATE "default")) END > 0`

const MATCHES = `
  ($1::text IS NULL OR queue = $1) AND ($2::text IS NULL OR name = $2)
  AND ($3::redrive.failure_kind IS NULL OR kind = $3::redrive.failure_kind)
  AND ($4::text IS NULL OR service = $4)
  AND ($5::redrive.recovery_status IS NULL OR status = $5::redrive.recovery_status)
  AND ($6::text[] IS NULL OR fingerprint = ANY ($6::text[])) AND ($7::text IS NULL OR assigned_to = $7)
  AND ($8::timestamptz IS NULL OR died_at >= $8::timestamptz) AND ($9::timestamptz IS NULL OR died_at < $9::timestamptz)
  AND ($10::text IS NULL OR ${CONTAINS('message')} OR ${CONTAINS('name')})`

/** Everything MATCHES looks at. */
const EVIDENCE = 'queue, name, kind, service, status, fingerprint, assigned_to, message'

/** What can lead, with the start of its index. `none`: the index by status and kind. */
const LEADS = {
  assignedTo: 'assigned_to = $7',
  fingerprint: 'fingerprint = ($6::text[])[1]',
  service: 'service = $4',
  name: 'name = $2',
  queue: 'queue = $1',
  none: 'true',
  // A branch for each fingerprint that a group can have; the planner drops those that it has not.
  group: '',
} as const
export type Lead = keyof typeof LEADS

const startsOf = (lead: Lead): readonly string[] =>
  lead === 'group'
    ? Array.from({ length: MOST_MERGED + 1 }, (_, nth) => `fingerprint = ($6::text[])[${nth + 1}]`)
    : [LEADS[lead]]

type Order = 'newest first' | 'oldest first'
const ORDER_BY: Readonly<Record<Order, string>> = {
  'newest first': 'ORDER BY died_at DESC, seq DESC',
  'oldest first': 'ORDER BY died_at, seq',
}

const AFTER = `AND ($12::bigint IS NULL OR
  (died_at, seq) < (timestamptz 'epoch' + $12::bigint * interval '1 microsecond', $13::bigint))`

/** A branch for each status there is, or for the one that is given. */
const ANY_STATUS = RECOVERY_STATUSES.map(
  status => `status = '${status}'
       AND ($5::redrive.recovery_status IS NULL OR $5::redrive.recovery_status = '${status}')`,
)
const GIVEN_STATUS = ['status = $5::redrive.recovery_status']

/**
 * Dead letters of one lead, in order, `columns` of each, at most `$11`. With a `cursor`, those after it: `$12` and `$13`.
 */
function inOrder(
  lead: Lead,
  order: Order,
  columns: string,
  { cursor = '', statuses = ANY_STATUS }: { cursor?: '' | typeof AFTER; statuses?: readonly string[] } = {},
): string {
  const branch = (start: string, status: string, kind?: Kind) => `
    (SELECT ${columns} FROM redrive.dead_letter
     WHERE ${start} AND ${status}
       ${kind ? `AND kind = '${kind}' AND ($3::redrive.failure_kind IS NULL OR $3::redrive.failure_kind = '${kind}')` : ''}
       AND ($8::timestamptz IS NULL OR died_at >= $8::timestamptz)
       AND ($9::timestamptz IS NULL OR died_at < $9::timestamptz) ${cursor}
     ${ORDER_BY[order]} LIMIT (SELECT $11::integer))`
  const branches = startsOf(lead).flatMap(start =>
    statuses.flatMap(status =>
      lead === 'none' ? KINDS.map(kind => branch(start, status, kind)) : branch(start, status),
    ),
  )
  return `SELECT * FROM (${branches.join(' UNION ALL ')}) merged ${ORDER_BY[order]} LIMIT (SELECT $11::integer)`
}

const forEachLead = (statement: (lead: Lead) => Statement): Readonly<Record<Lead, Statement>> => {
  const leads = Object.keys(LEADS) as Lead[]
  return Object.fromEntries(leads.map(lead => [lead, statement(lead)])) as Record<Lead, Statement>
}

/** Where a letter is in the order, as text: the microsecond of its death and its number. */
export const placeOf = (letter: string): string =>
  `(extract(epoch FROM ${letter}.died_at) * 1000000)::bigint || '.' || ${letter}.seq`

/**
 * `found`: the spots of those that match, after `$15` and at most `$14`. `rest`: where to go on, if that was too few and
 * there are more to look at than `$11`.
 */
export const pageOf = (body: string): Readonly<Record<Lead, Statement>> =>
  forEachLead(
    lead => sql`
  WITH looked AS MATERIALIZED (
    SELECT spot, died_at, seq, ${MATCHES} AS hit
    FROM (${inOrder(lead, 'newest first', `ctid AS spot, died_at, seq, ${EVIDENCE}`, { cursor: AFTER })}) letter
  ), found AS MATERIALIZED (
    SELECT spot FROM looked WHERE hit LIMIT $14::integer OFFSET $15::integer
  ), rest AS MATERIALIZED (
    SELECT ${placeOf('looked')} AS rest FROM looked
    LIMIT CASE WHEN (SELECT count(*) FROM found) < $14::integer THEN 1 ELSE 0 END OFFSET $11::integer - 1
  ) ${body}`,
  )

const countOf = (columns: string, matches: string) =>
  forEachLead(
    lead => sql`
  SELECT count(*) AS looked_at, count(*) FILTER (WHERE ${matches}) AS matching
  FROM (${inOrder(lead, 'newest first', columns)}) letter`,
  )
export const COUNT = countOf(`died_at, seq, ${EVIDENCE}`, MATCHES)

/** For a filter that its lead answers: the index alone is read. The planner drops the condition, which gives types. */
const TYPES = `num_nulls($1::text, $2::text, $3::redrive.failure_kind, $4::text, $6::text[], $7::text, $10::text) >= 0`
export const COUNT_LEAD = countOf('died_at, seq', TYPES)

/** The place of number `$11`, by the index alone: pages that are asked for by their offset begin after it. */
// Only the last one's place is worked out: for all of them it would take longer than reading them.
export const SKIP = forEachLead(
  lead => sql`
  SELECT ${placeOf('last')} AS place FROM (
    SELECT died_at, seq FROM (${inOrder(lead, 'newest first', 'died_at, seq', { cursor: AFTER })}) letter
    WHERE ${TYPES} OFFSET $11::integer - 1
  ) last`,
)

/** `$12`: at most so many. `$13`: only those that died so many milliseconds ago or earlier; `$14` is now. */
const frozen = (lead: Lead) => `
  SELECT id, unique_key
  FROM (${inOrder(lead, 'oldest first', `id, unique_key, died_at, seq, ${EVIDENCE}`, { statuses: GIVEN_STATUS })}) letter
  WHERE ${MATCHES} AND ($13::double precision IS NULL
    OR died_at <= coalesce($14::timestamptz, now()) - $13::double precision * interval '1 millisecond')
  LIMIT $12::integer`
export const FREEZE = forEachLead(lead => sql`SELECT id FROM (${frozen(lead)}) frozen`)
/**
 * The same in batches of `$15`, with `;` between them, and places in line: batches that are then written side by side keep
 * their order. Put together as they come, which is in order: neither grouped nor sorted again.
 */
export const FREEZE_IN_BATCHES = forEachLead(
  lead => sql`
  SELECT string_agg(id::text, comma) AS ids, string_agg(nextval('redrive.job_seq')::text, comma) AS places,
    count(unique_key) > 0 AS keyed
  FROM (
    SELECT id, unique_key, CASE (row_number() OVER () - 1) % $15::integer WHEN 0 THEN ';' ELSE ',' END AS comma
    FROM (${frozen(lead)}) frozen
  ) spaced`,
)
export const PREVIEW = forEachLead(lead => sql`SELECT count(*) AS count FROM (${frozen(lead)}) frozen`)

/** Fewer than this are read in no time, whatever else is asked of them. */
const FEW = 1_000

const fewOf = (lead: string, column: string, param: string) => `
  SELECT '${lead}' AS lead, count(*) AS letters
  FROM (SELECT FROM redrive.dead_letter WHERE ${column} = ${param} ORDER BY status, died_at, seq LIMIT (SELECT $8::integer)) few
  HAVING ${param}::text IS NOT NULL`

const FEWEST = sql`
  SELECT lead FROM (
    ${fewOf('assignedTo', 'assigned_to', '$1')} UNION ALL
    SELECT 'fingerprint', count(*) FROM unnest($2::text[]) member CROSS JOIN LATERAL (
      SELECT FROM redrive.dead_letter WHERE fingerprint = member ORDER BY status, died_at, seq LIMIT (SELECT $8::integer)
    ) few HAVING $2::text[] IS NOT NULL
    UNION ALL ${fewOf('service', 'service', '$3')} UNION ALL ${fewOf('name', 'name', '$4')}
    UNION ALL ${fewOf('queue', 'queue', '$5')} UNION ALL
    SELECT 'none', count(*) FROM (
      SELECT FROM redrive.dead_letter WHERE kind = $6::redrive.failure_kind
        AND status = coalesce($7::redrive.recovery_status, 'pending') ORDER BY died_at, seq LIMIT (SELECT $8::integer)
    ) few HAVING $6::text IS NOT NULL
  ) given ORDER BY letters LIMIT 1`

export interface Search {
  readonly lead: Lead
  /** Whether the lead's index answers the whole filter. */
  readonly whole: boolean
}

const GIVEN = ['assignedTo', 'fingerprint', 'service', 'name', 'queue'] as const

/** What leads: where several parts of the filter could, the one with the fewest letters. */
export async function searchOf(db: Queryable, filter: Sought): Promise<Search> {
  const { assignedTo, fingerprints, service, name, queue, kind, status, text } = filter
  const byFingerprint = fingerprintsOf(filter)
  const given = GIVEN.filter(lead => (lead === 'fingerprint' ? byFingerprint !== null : filter[lead] !== undefined))
  const leading = (lead: Lead | undefined): Lead =>
    lead === 'fingerprint' && (fingerprints?.length ?? 0) > 1 ? 'group' : (lead ?? 'none')
  const several = given.length + (kind === undefined ? 0 : 1) > 1
  const whole = !several && text === undefined
  if (!several) return { lead: leading(given[0]), whole }
  const params = [assignedTo, byFingerprint, service, name, queue, kind, status].map(value => value ?? null)
  const [row] = await db.query<{ lead: Lead }>(FEWEST, [...params, FEW])
  return { lead: leading(row?.lead), whole }
}
