// Breakers of services, as the whole fleet sees them. A move is one statement that changes the row only if it is still
// the one the mover had looked at; whoever loses such a race looks again.
import type { Breaker, BreakerState } from '../domain/breaker.js'
import type { Json } from '../domain/json.js'
import { cap, LIMITS } from '../domain/limits.js'
import { type Queryable, sql } from './database.js'
import { millis, toJson } from './rows.js'

/** A breaker with what a person set for its service at run time. */
export interface BreakerRow extends Breaker {
  /** Null: nothing was set. */
  readonly settings: Json
  readonly settingsVersion: number
  /** The database's time when it was read. */
  readonly readAt: number
}

const COLUMNS = `
  service, state::text AS state, ${millis('since')} AS since, ${millis('open_until')} AS open_until, openings, permits,
  ${millis('permits_since')} AS permits_since, probes_succeeded, probes_failed, version, shadow, reason, changed_by,
  settings::text AS settings, settings_version`

// One row more than there are breakers, so that the time is told even if there is none.
const READ = sql`
  SELECT NULL::text AS service, ${millis('coalesce($1::timestamptz, now())')} AS read_at, NULL::json AS row
  UNION ALL
  SELECT b.service, NULL, row_to_json(b) FROM (
    SELECT ${COLUMNS} FROM redrive.breaker
    WHERE $2::json IS NULL OR service IN (SELECT json_array_elements_text($2::json))
    ORDER BY service LIMIT 10000
  ) b`

interface Row {
  service: string
  state: BreakerState
  since: number
  open_until: number | null
  openings: number
  permits: number
  permits_since: number
  probes_succeeded: number
  probes_failed: number
  version: number
  shadow: boolean
  reason: string
  changed_by: string
  settings: string | null
  settings_version: number
}

export interface BreakersRead {
  /** The database's time when they were read. */
  readonly readAt: number
  readonly breakers: readonly BreakerRow[]
}

/** The breakers of the named services, or all. A service without a row is closed and never was anything else. */
export async function breakers(db: Queryable, services?: readonly string[]): Promise<BreakersRead> {
  const rows = await db.query<{ service: string | null; read_at: number | null; row: Row | string | null }>(READ, [
    db.now(),
    services === undefined ? null : JSON.stringify(services),
  ])
  const readAt = Number(rows.find(({ service }) => service === null)?.read_at)
  return {
    readAt,
    breakers: rows.flatMap(({ row }) => {
      if (row === null) return []
      return [toBreaker(typeof row === 'string' ? (JSON.parse(row) as Row) : row, readAt)]
    }),
  }
}

const toBreaker = (row: Row, readAt: number): BreakerRow => ({
  service: row.service,
  state: row.state,
  since: row.since,
  openUntil: row.open_until,
  openings: row.openings,
  permits: row.permits,
  permitsSince: row.permits_since,
  probesSucceeded: row.probes_succeeded,
  probesFailed: row.probes_failed,
  version: row.version,
  reason: row.reason,
  changedBy: row.changed_by,
  shadow: row.shadow,
  settings: toJson(row.settings),
  settingsVersion: row.settings_version,
  readAt,
})

export interface BreakerMove {
  readonly service: string
  /** The version it was at when the move was chosen; 0: it had no row. */
  readonly fromVersion: number
  readonly state: BreakerState
  /** How long it stays open; only with `open`. */
  readonly openMs?: number | undefined
  readonly openings: number
  readonly shadow: boolean
  readonly reason: string
  readonly changedBy: string
}

// A half-open breaker that stays so asks for those probes again of which nothing was heard; what was heard counts.
const MOVE = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($1::timestamptz, now()) AS now),
  moved AS (
    INSERT INTO redrive.breaker AS b
      (service, state, since, open_until, openings, permits_since, shadow, reason, changed_by)
    SELECT $2, $3::redrive.breaker_state, now, now + $4::double precision * interval '1 millisecond', $5::integer, now,
      $6::boolean, $7, $8
    FROM clock
    ON CONFLICT (service) DO UPDATE
    SET state = excluded.state, open_until = excluded.open_until, openings = excluded.openings,
        since = CASE WHEN b.state = excluded.state THEN b.since ELSE excluded.since END,
        permits = CASE WHEN b.state = excluded.state THEN b.probes_succeeded + b.probes_failed ELSE 0 END,
        probes_succeeded = CASE WHEN b.state = excluded.state THEN b.probes_succeeded ELSE 0 END,
        probes_failed = CASE WHEN b.state = excluded.state THEN b.probes_failed ELSE 0 END,
        permits_since = excluded.permits_since, version = b.version + 1,
        shadow = excluded.shadow, reason = excluded.reason, changed_by = excluded.changed_by
    WHERE b.version = $9::integer
    RETURNING service
  )
  SELECT service, CASE WHEN $10::text IS NOT NULL THEN pg_notify($10, $11) END AS told FROM moved`

/** False: somebody else moved it first. `channel`: where to tell the other processes. */
export async function moveBreaker(db: Queryable, move: BreakerMove, channel: string | null): Promise<boolean> {
  const { service, fromVersion, state, openMs, openings, shadow, changedBy } = move
  const reason = cap(move.reason, LIMITS.reasonChars)
  const where = [db.now(), service, state, openMs ?? null, openings, shadow, reason, changedBy, fromVersion]
  return (await db.query(MOVE, [...where, channel, serviceNews(service)])).length === 1
}

const TAKE = sql`
  UPDATE redrive.breaker b SET permits = least(b.permits + $3::integer, $4::integer)
  FROM (SELECT permits FROM redrive.breaker WHERE service = $1 AND version = $2::integer FOR UPDATE) was
  WHERE b.service = $1 AND b.version = $2::integer AND b.permits < $4::integer
  RETURNING b.permits - was.permits AS taken`

/** Up to `asked` permits, as long as no more than `allowed` have been given out in all; exact over the fleet. */
export async function takePermits(
  db: Queryable,
  breaker: Pick<Breaker, 'service' | 'version'>,
  asked: number,
  allowed: number,
): Promise<number> {
  const [row] = await db.query<{ taken: number }>(TAKE, [breaker.service, breaker.version, asked, allowed])
  return Number(row?.taken ?? 0)
}

const RETURN = sql`
  UPDATE redrive.breaker SET permits = greatest(0, permits - $3::integer) WHERE service = $1 AND version = $2::integer`

/** Permits that found no job to spend them on. */
export async function returnPermits(
  db: Queryable,
  breaker: Pick<Breaker, 'service' | 'version'>,
  unused: number,
): Promise<void> {
  await db.query(RETURN, [breaker.service, breaker.version, unused])
}

const REPORT = sql`
  UPDATE redrive.breaker SET probes_succeeded = probes_succeeded + $3::integer, probes_failed = probes_failed + $4::integer
  WHERE service = $1 AND state = 'half_open' AND openings = $2::integer`

/** How probes ended. Those of an earlier opening say nothing of this one. */
export async function reportProbes(
  db: Queryable,
  breaker: Pick<Breaker, 'service' | 'openings'>,
  ended: { readonly succeeded: number; readonly failed: number },
): Promise<void> {
  await db.query(REPORT, [breaker.service, breaker.openings, ended.succeeded, ended.failed])
}

const SET = sql`
  WITH clock AS MATERIALIZED (SELECT coalesce($3::timestamptz, now()) AS now),
  written AS (
    INSERT INTO redrive.breaker AS b (service, since, permits_since, reason, changed_by, settings, settings_version, version)
    SELECT $1, now, now, 'nothing has happened yet', $4, $2::json, 1, 1 FROM clock
    ON CONFLICT (service) DO UPDATE SET settings = excluded.settings, settings_version = b.settings_version + 1
    RETURNING settings_version
  )
  SELECT settings_version, CASE WHEN $5::text IS NOT NULL THEN pg_notify($5, $6) END AS told FROM written`

/** Sets or, with null, removes what a person set for a service; returns its new version. */
export async function setServiceSettings(
  db: Queryable,
  service: string,
  settings: Json,
  actor: string,
  channel: string | null,
): Promise<number> {
  const text = settings === null ? null : JSON.stringify(settings)
  const [row] = await db.query<{ settings_version: number }>(SET, [
    service,
    text,
    db.now(),
    actor,
    channel,
    serviceNews(service),
  ])
  return Number(row?.settings_version)
}

/** News of a service travel on the wake channel: no queue can have such a name. */
const serviceNews = (service: string): string => `\n${service}`

/** The service a message is about; undefined for the name of a queue. */
export const serviceOfNews = (message: string): string | undefined =>
  message.startsWith('\n') ? message.slice(1) : undefined
