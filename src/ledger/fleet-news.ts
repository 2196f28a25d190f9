// What happened in the fleet since a moment ago: one statement of a few short index scans, each with a limit, whatever the
// ledger holds. Read by one process for all who listen to it.
import type { FleetEvent, FleetNews, KeyedEvent } from '../domain/fleet-event.js'
import { type Queryable, sql } from './database.js'
import { millis } from './rows.js'

/** A row is written with the time at which its transaction began: what committed late is found by looking back so far. */
const LOOK_BACK_MS = 5_000
/** Of one sort, in one look; more than this is told as one. */
const MOST = 100

const SINCE = `(SELECT since FROM clock)`
/** As JSON writes a time anyway, whatever the session's time zone is. */
const utc = (column: string) => `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`

// Deaths are found in the index by status and kind, one range for each kind. LATERAL with a limit, not a join: that might
// be answered by hashing the whole table. A limit that the planner cannot see keeps it on the index. The audit is found by its id, newest first.
const NEWS = sql`
  WITH clock AS MATERIALIZED (
    SELECT now, coalesce(to_timestamp($2::double precision / 1000), now) - ${String(LOOK_BACK_MS)} * interval '1 millisecond' AS since
    FROM (SELECT coalesce($1::timestamptz, now()) AS now) c
  ), dead AS (
    SELECT d.* FROM unnest(enum_range(NULL::redrive.failure_kind)) AS of(kind) CROSS JOIN LATERAL (
      SELECT died_at AS at, seq, id, queue, name, kind, fingerprint, service, total_attempts,
        left(reason, 500) AS reason, left(message, 500) AS message
      FROM redrive.dead_letter WHERE status = 'pending' AND kind = of.kind AND died_at > ${SINCE}
      ORDER BY status DESC, kind DESC, died_at DESC, seq DESC LIMIT $3::integer
    ) d ORDER BY at DESC, seq DESC LIMIT $3::integer
  ), made AS (
    SELECT updated_at AS at, fingerprint AS id, title, kind, service, first_version AS version FROM (
      SELECT * FROM redrive.failure_group WHERE merged_into IS NULL ORDER BY last_seen DESC, fingerprint DESC
      LIMIT (SELECT $3::integer)
    ) g WHERE updated_at > ${SINCE} AND version = 1
  ), done AS (
    SELECT a.at, a.id, a.action, a.target_type, a.target, a.actor, a.reason, a.after ->> 'message' AS message, g.title, g.kind,
      g.service, g.regressed_version AS version
    FROM (SELECT * FROM redrive.audit ORDER BY id DESC LIMIT $3::integer) a
    LEFT JOIN LATERAL (
      SELECT * FROM redrive.failure_group g
      WHERE a.action = 'regress' AND a.target_type = 'group' AND g.fingerprint = a.target COLLATE "C" LIMIT 1
    ) g ON true
    WHERE a.at > ${SINCE} AND a.action <> 'refused'
  ), moved AS (
    SELECT since AS at, service, state, reason, changed_by, shadow, ${utc('open_until')} AS open_until FROM redrive.breaker
    WHERE since > ${SINCE} AND version > 0 ORDER BY since DESC LIMIT $3::integer
  ), run AS (
    SELECT finished_at AS at, id, cause, worker, status, rescued, promoted, buried, triaged, cleaned, expired, error
    FROM (SELECT * FROM redrive.recovery_run ORDER BY id DESC LIMIT 20) r WHERE finished_at > ${SINCE}
  ), seen AS (
    SELECT id, worker, host, queues, started_at, ended_at, ended_by
    FROM (SELECT * FROM redrive.session ORDER BY id DESC LIMIT $3::integer) s WHERE started_at > ${SINCE} OR ended_at > ${SINCE}
  )
  SELECT ${millis('now')} AS now, json_build_object(
    'dead', (SELECT json_agg(json_build_object('at', ${utc('at')}, 'row', dead) ORDER BY at, seq) FROM dead),
    'made', (SELECT json_agg(json_build_object('at', ${utc('at')}, 'row', made)) FROM made),
    'done', (SELECT json_agg(json_build_object('at', ${utc('at')}, 'row', done) ORDER BY id) FROM done),
    'moved', (SELECT json_agg(json_build_object('at', ${utc('at')}, 'row', moved)) FROM moved),
    'run', (SELECT json_agg(json_build_object('at', ${utc('at')}, 'row', run)) FROM run),
    'started', (SELECT json_agg(json_build_object('at', ${utc('started_at')}, 'row', seen)) FROM seen WHERE started_at > ${SINCE}),
    'ended', (SELECT json_agg(json_build_object('at', ${utc('ended_at')}, 'row', seen)) FROM seen WHERE ended_at > ${SINCE})
  )::text AS news FROM clock`

type Of = 'dead' | 'made' | 'done' | 'moved' | 'run' | 'started' | 'ended'
// biome-ignore lint/suspicious/noExplicitAny: columns as they are read above, named once more below
type Found = { readonly at: string; readonly row: any }

/** `since`: the `now` of the look before; undefined: only what happened just now, to know what is old. */
export async function fleetNews(db: Queryable, since: number | undefined): Promise<FleetNews> {
  const [row] = await db.query<{ now: number; news: string }>(NEWS, [db.now(), since ?? null, MOST])
  const read = JSON.parse(row?.news ?? '{}') as Partial<Record<Of, Found[] | null>>
  const events = (Object.keys(TOLD) as Of[]).flatMap(of => {
    const found = read[of] ?? []
    const told = found.map((each): KeyedEvent => ({ ...TOLD[of](each), at: each.at }) as KeyedEvent)
    const at = found[0]?.at
    if (found.length < MOST || at === undefined) return told
    return [{ key: `missed:${of}:${at}`, name: 'missed' as const, at, about: { of: SORTS[of] } }, ...told]
  })
  return { now: Number(row?.now), events: events.sort((a, b) => (a.at < b.at ? -1 : Number(a.at > b.at))) }
}

const SORTS: Readonly<Record<Of, string>> = {
  dead: 'job.dead',
  made: 'group.new',
  done: 'desk.changed',
  moved: 'breaker.changed',
  run: 'recovery.finished',
  started: 'worker.started',
  ended: 'worker.ended',
}

type Told = { readonly key: string } & Omit<FleetEvent, 'at'>

const TOLD: Readonly<Record<Of, (found: Found) => Told>> = {
  dead: ({ row, at }) => ({
    key: `dead:${row.id}:${at}`,
    name: 'job.dead',
    about: {
      id: row.id,
      queue: row.queue,
      name: row.name,
      kind: row.kind,
      group: row.fingerprint,
      ...given('service', row.service),
      attempts: row.total_attempts,
      reason: row.reason,
      message: row.message,
    },
  }),
  made: ({ row }) => ({ key: `group:${row.id}`, name: 'group.new', about: group(row.id, row) }),
  done: ({ row }) => ({ key: `audit:${row.id}`, ...ofAudit(row) }),
  moved: ({ row, at }) => ({
    key: `breaker:${row.service}:${at}`,
    name: 'breaker.changed',
    about: {
      service: row.service,
      to: row.state,
      reason: row.reason,
      by: row.changed_by,
      shadow: row.shadow,
      ...given('openUntil', row.open_until),
    },
  }),
  run: ({ row }) => {
    const { at: _, error, id, ...about } = row
    return {
      key: `run:${id}`,
      name: 'recovery.finished',
      about: { id: String(id), ...about, ...given('error', error) },
    }
  },
  started: ({ row }) => ({
    key: `started:${row.id}`,
    name: 'worker.started',
    about: { worker: row.worker, host: row.host, queues: row.queues },
  }),
  ended: ({ row }) => ({
    key: `ended:${row.id}`,
    name: 'worker.ended',
    about: { worker: row.worker, host: row.host, how: row.ended_by },
  }),
}

function ofAudit(row: Found['row']): Omit<Told, 'key'> {
  const { action, target_type: targetType, target, actor: by } = row
  const why = given('reason', row.reason)
  switch (`${targetType} ${action}`) {
    case 'queue pause':
      return { name: 'queue.paused', about: { queue: target, by, ...why } }
    case 'queue resume':
      return { name: 'queue.resumed', about: { queue: target, by, ...why } }
    case 'dead_letter triage escalate':
      return { name: 'triage.escalated', about: { id: target, by, message: row.message ?? '' } }
    case 'group regress':
      return { name: 'group.regressed', about: group(target, row) }
    default:
      return { name: 'desk.changed', about: { action, targetType, target, by, ...why } }
  }
}

const group = (id: string, row: Found['row']) => ({
  id,
  title: row.title ?? id,
  kind: row.kind ?? 'permanent',
  ...given('service', row.service),
  ...given('version', row.version),
})

const given = (name: string, value: unknown) => (value === null || value === undefined ? {} : { [name]: value })
