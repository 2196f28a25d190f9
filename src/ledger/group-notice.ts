// From counts to groups. Settling only counts (settle/failures.ts); what a person works on is made from the counts a
// moment later, by whichever process has something to say, by whoever looks, and by recovery for those that died before
// they could. All read the same ledger, so it does not matter who: a cause becomes a group once, and a resolved group that
// failed again is found once.
import type { Kind } from '../domain/failure.js'
import { type Queryable, sql } from './database.js'
import { members } from './group-members.js'
import { optional } from './rows.js'

const BATCH = 500
const MOST_MISSED = 10_000

const MAKE = sql`SELECT fingerprint, is_made FROM redrive.make_groups($1::timestamptz, $2::integer)`

/** Makes the groups of new causes; returns their fingerprints. Costs nothing when there is none. */
export async function makeGroups(db: Queryable): Promise<string[]> {
  const made = new Set<string>()
  for (;;) {
    const rows = await db.query<{ fingerprint: string; is_made: boolean }>(MAKE, [db.now(), BATCH])
    for (const row of rows) if (row.is_made) made.add(row.fingerprint)
    if (rows.length < BATCH) return [...made]
  }
}

// Whoever makes a group has a lock on its counts.
const BEING_MADE = sql`
  SELECT 1 FROM redrive.failure_tally t
  WHERE t.fingerprint = $1 AND (SELECT 1 FROM redrive.failure_group g WHERE g.fingerprint = $1) IS NULL
  ORDER BY t.queue, t.name, t.version, t.bucket, t.shard FOR SHARE OF t`

/** Whether this cause has failed. If another connection is making its group just now, resolves when that is made. */
export async function groupIsMade(db: Queryable, fingerprint: string): Promise<boolean> {
  return (await db.query(BEING_MADE, [fingerprint])).length > 0
}

// Counts only grow, so the greater one is the newer one, whoever wrote it. Groups are found again by their key: one that was
// changed while its lock was waited for is in a place that this statement's snapshot does not see. A failure regresses its group if it happened
// after the resolution, by the ledger's clock, not if it was noticed after it.
const NOTICE = sql`
  WITH head AS MATERIALIZED (
    SELECT fingerprint, status, resolved_at, announced FROM redrive.failure_group
    WHERE merged_into IS NULL AND fingerprint = ANY (ARRAY(
      SELECT coalesce(merged_into, fingerprint) FROM redrive.failure_group
      WHERE fingerprint = ANY (ARRAY(SELECT json_array_elements_text($1::json)))))
    ORDER BY fingerprint FOR UPDATE
  ), counted AS MATERIALIZED (
    SELECT head.*, total.*, coalesce(head.status = 'resolved' AND total.last_at > head.resolved_at, false) AS regressed
    FROM head CROSS JOIN LATERAL (
      SELECT max(own.last_at) AS last_at, sum(own.failures) AS failures, sum(own.deaths) AS deaths
      FROM ${members('head.fingerprint')} CROSS JOIN LATERAL (
        SELECT max(t.last_at) AS last_at, sum(t.failures) AS failures, sum(t.deaths) AS deaths
        FROM redrive.failure_tally t WHERE t.fingerprint = member.id
      ) own
    ) total
  ), changed AS (
    UPDATE redrive.failure_group g
    SET last_seen = greatest(g.last_seen, c.last_at), failures = greatest(g.failures, c.failures),
        deaths = greatest(g.deaths, c.deaths), announced = true,
        status = CASE WHEN c.regressed THEN 'open' ELSE g.status END,
        resolved_at = CASE WHEN NOT c.regressed THEN g.resolved_at END,
        resolved_by = CASE WHEN NOT c.regressed THEN g.resolved_by END,
        regressed_at = CASE WHEN c.regressed THEN c.last_at ELSE g.regressed_at END,
        regressed_version = CASE WHEN c.regressed THEN (
          SELECT nullif(t.version, '') FROM ${members('c.fingerprint')}
          JOIN redrive.failure_tally t ON t.fingerprint = member.id
          WHERE t.last_at > c.resolved_at ORDER BY t.last_at LIMIT 1
        ) ELSE g.regressed_version END,
        regressions = g.regressions + c.regressed::integer, version = g.version + c.regressed::integer,
        updated_at = CASE WHEN c.regressed THEN coalesce($2::timestamptz, now()) ELSE g.updated_at END
    FROM counted c
    WHERE g.fingerprint = c.fingerprint AND g.fingerprint = ANY (ARRAY(SELECT fingerprint FROM head))
      AND (NOT g.announced OR c.regressed OR c.last_at > g.last_seen OR c.failures > g.failures OR c.deaths > g.deaths)
    RETURNING g.fingerprint, g.title, g.kind, g.service, g.first_version, g.regressed_version, NOT c.announced AS is_new, c.regressed
  ), noted AS (
    INSERT INTO redrive.audit (at, actor, action, target_type, target, before, after)
    SELECT coalesce($2::timestamptz, now()), 'redrive', 'regress', 'group', fingerprint, '{"status":"resolved"}',
      json_build_object('status', 'open', 'version', regressed_version)
    FROM changed WHERE regressed
  )
  SELECT * FROM changed WHERE is_new OR regressed ORDER BY fingerprint`

const MISSED = sql`
  SELECT DISTINCT t.fingerprint FROM redrive.failure_tally t
  JOIN redrive.failure_group g ON g.fingerprint = t.fingerprint
  JOIN redrive.failure_group h ON h.fingerprint = coalesce(g.merged_into, g.fingerprint)
  WHERE t.last_at > h.last_seen OR NOT h.announced LIMIT $1::integer`

/** What there is to tell of a group. */
export interface GroupNews {
  readonly what: 'new' | 'regressed'
  readonly id: string
  readonly title: string
  readonly kind: Kind
  readonly service?: string
  /** Of the worker it was first seen in, or seen in again. */
  readonly version?: string
}

interface Row {
  fingerprint: string
  title: string
  kind: Kind
  service: string | null
  first_version: string | null
  regressed_version: string | null
  regressed: boolean
}

const toNews = (row: Row): GroupNews => ({
  what: row.regressed ? 'regressed' : 'new',
  id: row.fingerprint,
  title: row.title,
  kind: row.kind,
  ...optional('service', row.service),
  ...optional('version', row.regressed ? row.regressed_version : row.first_version),
})

/** These causes failed lately: brings their groups up to date. Each piece of news is told to one caller only. */
export async function noticeFailures(db: Queryable, fingerprints: Iterable<string>): Promise<GroupNews[]> {
  return notice(db, [...new Set([...fingerprints, ...(await makeGroups(db))])])
}

/** The same for what nobody noticed, because its process is gone. */
export async function noticeMissed(db: Queryable): Promise<GroupNews[]> {
  await makeGroups(db)
  const rows = await db.query<{ fingerprint: string }>(MISSED, [MOST_MISSED])
  return notice(
    db,
    rows.map(row => row.fingerprint),
  )
}

async function notice(db: Queryable, causes: readonly string[]): Promise<GroupNews[]> {
  const news: GroupNews[] = []
  for (let from = 0; from < causes.length; from += BATCH) {
    const batch = JSON.stringify(causes.slice(from, from + BATCH))
    news.push(...(await db.query<Row>(NOTICE, [batch, db.now()])).map(toNews))
  }
  return news
}
