// What a person set for rate limits at run time, and how limits stand.
import type { Pace, RateLimitSettings } from '../domain/rate-limit.js'
import { type Queryable, sql } from './database.js'
import { millis, toDate } from './rows.js'

export interface RateLimitSetting extends RateLimitSettings {
  readonly name: string
  /** The one key it is for; undefined: all of them. */
  readonly key?: string
  readonly setAt: Date
  readonly setBy: string
}

interface SettingRow {
  name: string
  key: string
  limit: number
  interval_ms: string | number
  burst: number
  set_at: number
  set_by: string
}

const toSetting = (row: SettingRow): RateLimitSetting => ({
  name: row.name,
  ...(row.key !== '' && { key: row.key }),
  limit: row.limit,
  intervalMs: Number(row.interval_ms),
  burst: row.burst,
  setAt: toDate(row.set_at),
  setBy: row.set_by,
})

const COLUMNS = `name, key, "limit", interval_ms, burst, ${millis('set_at')} AS set_at, set_by`
const SETTINGS = sql`
  SELECT ${COLUMNS} FROM redrive.rate_limit_setting WHERE $1::text IS NULL OR name = $1 ORDER BY name, key LIMIT $2::integer`
const SETTING = sql`SELECT ${COLUMNS} FROM redrive.rate_limit_setting WHERE name = $1 AND key = $2 FOR UPDATE`

export async function rateLimitSettings(
  db: Queryable,
  name: string | null,
  limit: number,
): Promise<RateLimitSetting[]> {
  return (await db.query<SettingRow>(SETTINGS, [name, limit])).map(toSetting)
}

/** For changing it: nobody else changes it before the transaction ends. */
export async function rateLimitSetting(
  db: Queryable,
  name: string,
  key: string,
): Promise<RateLimitSetting | undefined> {
  const [row] = await db.query<SettingRow>(SETTING, [name, key])
  return row && toSetting(row)
}

const SET = sql`
  INSERT INTO redrive.rate_limit_setting AS s (name, key, "limit", interval_ms, burst, spacing_ms, saved_ms, late_ms, set_at, set_by)
  VALUES ($1, $2, $3::integer, $4::bigint, $5::integer, $6::double precision, $7::double precision, $8::double precision,
          coalesce($9::timestamptz, now()), $10)
  ON CONFLICT (name, key) DO UPDATE
  SET "limit" = excluded."limit", interval_ms = excluded.interval_ms, burst = excluded.burst,
      spacing_ms = excluded.spacing_ms, saved_ms = excluded.saved_ms, late_ms = excluded.late_ms,
      set_at = excluded.set_at, set_by = excluded.set_by`

export async function setRateLimit(
  db: Queryable,
  { name, key }: { name: string; key: string },
  { limit, intervalMs, burst }: RateLimitSettings,
  { spacingMs, savedMs, lateMs }: Pace,
  actor: string,
): Promise<void> {
  await db.query(SET, [name, key, limit, intervalMs, burst, spacingMs, savedMs, lateMs, db.now(), actor])
}

const UNSET = sql`DELETE FROM redrive.rate_limit_setting WHERE name = $1 AND key = $2 RETURNING 1`

/** The code's own settings hold again. False: nothing was set. */
export async function unsetRateLimit(db: Queryable, name: string, key: string): Promise<boolean> {
  return (await db.query(UNSET, [name, key])).length === 1
}

// A slot that a slow limit has put far ahead is brought as near as the new one allows; never before what was given out.
// In the order of the keys, like those who take slots.
const FOLLOW = sql`
  WITH locked AS MATERIALIZED (
    SELECT l.name, l.key, l.spacing_ms, l.saved_ms FROM redrive.rate_limit l
    WHERE l.name = $1 AND ($2 = '' OR l.key = $2) ORDER BY l.key FOR UPDATE
  )
  UPDATE redrive.rate_limit l
  SET next_at = least(l.next_at, coalesce($3::timestamptz, now()) + (p.spacing + $4::double precision) * interval '1 millisecond'),
      release_at = CASE WHEN l.release_at IS NOT NULL THEN coalesce($3::timestamptz, now()) END
  FROM locked, redrive.rate_pace(locked.name, locked.key, locked.spacing_ms, locked.saved_ms, 0) p
  WHERE l.name = locked.name AND l.key = locked.key`

/** Schedules in use follow a change at once. */
export async function followRateLimit(db: Queryable, name: string, key: string, horizonMs: number): Promise<void> {
  await db.query(FOLLOW, [name, key, db.now(), horizonMs])
}

export interface RateLimitState {
  readonly name: string
  /** Empty: the limit has no key. */
  readonly key: string
  /** The next start that nobody has; in the past: at once. */
  readonly nextAt: Date
  /** Jobs that are held for it, up to 10,000. */
  readonly held: number
}

const STATES = sql`
  SELECT l.name, l.key, ${millis('l.next_at')} AS next_at,
    CASE WHEN l.release_at IS NULL THEN 0 ELSE (
      SELECT count(*) FROM (
        SELECT FROM redrive.job j WHERE j.held_by = redrive.rate_held_by(l.name, l.key) AND NOT j.in_line LIMIT 10000) held
    ) END AS held
  FROM redrive.rate_limit l
  WHERE ($1::text IS NULL OR l.name = $1) AND ($2::text IS NULL OR (l.name, l.key) > ($2, $3))
  ORDER BY l.name, l.key LIMIT $4::integer`

/** Keys that were used lately, by name; `after`: the last one of the page before. */
export async function rateLimitStates(
  db: Queryable,
  filter: { name?: string; after?: { name: string; key: string }; limit: number },
): Promise<RateLimitState[]> {
  const { name = null, after, limit } = filter
  const rows = await db.query<{ name: string; key: string; next_at: number; held: string | number }>(STATES, [
    name,
    after?.name ?? null,
    after?.key ?? null,
    limit,
  ])
  return rows.map(row => ({ name: row.name, key: row.key, nextAt: toDate(row.next_at), held: Number(row.held) }))
}
