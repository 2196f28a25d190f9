// What the doctor asks of Postgres itself: connections, transactions that hold vacuum back, the state of the live table.
// Read-only, from the server's own views, a few rows each.
import { type Queryable, sql } from './database.js'
import { millis, toNumber } from './rows.js'

/** Something that keeps vacuum from removing dead rows: they slow every claim down (pitfall 11). */
export interface Holder {
  readonly kind: 'transaction' | 'prepared transaction' | 'replication slot'
  /** A process id, or the name that it was given. */
  readonly name: string
  /** Who it belongs to: role and program, as far as they are known. */
  readonly of: string
  readonly state: string
  /** For how long; null: since a time that the server does not tell. */
  readonly heldMs: number | null
}

export interface ServerState {
  readonly version: string
  /** The database's time. */
  readonly now: number
  /** How many connections there may be, beside those that are kept for superusers. */
  readonly connectionsAllowed: number
  readonly connectionsUsed: number
  /** Sessions of other roles, whose transactions this role may not see. */
  readonly hiddenSessions: number
  readonly autovacuum: boolean
  readonly holders: readonly Holder[]
}

const MOST_HOLDERS = 20

const SERVER = sql`
  WITH holder AS (
    SELECT 'transaction' AS kind, pid::text AS name, concat_ws(', ', usename, nullif(application_name, '')) AS "of",
      coalesce(state, 'unknown') AS state, ${millis('clock_timestamp() - xact_start')} AS held
    FROM pg_stat_activity
    WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend'
      AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL)
      AND xact_start < clock_timestamp() - $1::double precision * interval '1 millisecond'
    UNION ALL
    SELECT 'prepared transaction', gid, owner::text, 'prepared', ${millis('clock_timestamp() - prepared')}
    FROM pg_prepared_xacts
    WHERE database = current_database() AND prepared < clock_timestamp() - $1::double precision * interval '1 millisecond'
    UNION ALL
    SELECT 'replication slot', slot_name::text, slot_type, 'not in use', NULL::double precision
    FROM pg_replication_slots WHERE NOT active AND xmin IS NOT NULL
  )
  SELECT current_setting('server_version') AS version, ${millis('clock_timestamp()')} AS now,
    current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
      - coalesce(nullif(current_setting('reserved_connections', true), '')::integer, 0) AS allowed,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS used,
    (SELECT count(*) FROM pg_stat_activity
     WHERE backend_type = 'client backend' AND datname = current_database() AND state IS NULL AND usename <> current_user
    ) AS hidden,
    current_setting('autovacuum') = 'on' AS autovacuum,
    (SELECT coalesce(json_agg(json_build_object('kind', kind, 'name', name, 'of', "of", 'state', state, 'heldMs', held)), '[]')
     FROM (SELECT * FROM holder ORDER BY held DESC NULLS LAST LIMIT ${String(MOST_HOLDERS)}) longest)::text AS holders`

interface ServerRow {
  version: string
  now: number
  allowed: unknown
  used: unknown
  hidden: unknown
  autovacuum: boolean
  holders: string
}

/** `heldMs`: transactions that have been open for longer are told of. */
export async function serverState(db: Queryable, heldMs: number): Promise<ServerState> {
  const [row] = await db.query<ServerRow>(SERVER, [heldMs])
  if (!row) throw new Error('the server gave no answer')
  return {
    version: row.version,
    now: row.now,
    connectionsAllowed: toNumber(row.allowed),
    connectionsUsed: toNumber(row.used),
    hiddenSessions: toNumber(row.hidden),
    autovacuum: row.autovacuum,
    holders: JSON.parse(row.holders) as Holder[],
  }
}

export interface LiveTable {
  readonly liveRows: number
  readonly deadRows: number
  /** Vacuum was switched off for this table alone. */
  readonly vacuumOff: boolean
  /** How long ago it was last vacuumed, by hand or by itself; null: never, as far as is known. */
  readonly vacuumedMsAgo: number | null
}

const LIVE_TABLE = sql`
  SELECT coalesce(s.n_live_tup, 0) AS live, coalesce(s.n_dead_tup, 0) AS dead,
    coalesce('autovacuum_enabled=false' = ANY (c.reloptions), false) AS off,
    ${millis('clock_timestamp() - greatest(s.last_vacuum, s.last_autovacuum)')} AS vacuumed
  FROM pg_class c LEFT JOIN pg_stat_user_tables s ON s.relid = c.oid
  WHERE c.oid = to_regclass('redrive.job')`

/** The table that every claim reads. */
export async function liveTable(db: Queryable): Promise<LiveTable> {
  const [row] = await db.query<{ live: unknown; dead: unknown; off: boolean; vacuumed: number | null }>(LIVE_TABLE)
  return {
    liveRows: toNumber(row?.live),
    deadRows: toNumber(row?.dead),
    vacuumOff: row?.off ?? false,
    vacuumedMsAgo: row?.vacuumed ?? null,
  }
}
