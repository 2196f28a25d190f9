// The dead letters that triage rules have to look at: those that died since the last look, in the order of death, and
// those whose time has come. A letter that no rule will ever want costs one look.
import { KINDS, type Kind } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import type { TriageLetter } from '../domain/triage.js'
import { type Queryable, sql } from './database.js'
import { millis, toJson } from './rows.js'

/** A death is written under the time at which its statement began: for so long an earlier one may still appear. */
const LATE_MS = 60_000

const COLUMNS = `id, queue, name, kind, service, fingerprint, message, triaged::text AS triaged,
  triage_at IS NOT NULL AS to_look_at, ${millis('died_at')} AS died_at`

const branch = (kind: Kind) => `
  (SELECT *, seq AS nth, died_at AS death FROM redrive.dead_letter
   WHERE status = 'pending' AND kind = '${kind}' AND ($1::bigint IS NULL OR
     (died_at, seq) > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::bigint))
   ORDER BY died_at, seq LIMIT (SELECT $3::integer))`

const AFTER = sql`
  SELECT ${COLUMNS}, (extract(epoch FROM death) * 1000000)::bigint AS micros, nth
  FROM (${KINDS.map(branch).join(' UNION ALL ')}) letter ORDER BY death, nth LIMIT (SELECT $3::integer)`

/** Where a look ended, in the order of death. */
export interface TriagePlace {
  readonly micros: string
  readonly seq: string
}

/** Open ones that died after `place`, oldest first. */
export async function lettersAfter(
  db: Queryable,
  place: TriagePlace | undefined,
  limit: number,
): Promise<{ letters: TriageLetter[]; place: TriagePlace | undefined }> {
  const rows = await db.query<Row & { micros: string | number; nth: string | number }>(AFTER, [
    place?.micros ?? null,
    place?.seq ?? null,
    limit,
  ])
  const last = rows.at(-1)
  return { letters: rows.map(toLetter), place: last && { micros: String(last.micros), seq: String(last.nth) } }
}

const DUE = sql`
  SELECT ${COLUMNS}, status FROM redrive.dead_letter WHERE triage_at <= coalesce($1::timestamptz, now())
  ORDER BY triage_at LIMIT (SELECT $2::integer)`

/** Those whose time has come; `closed`: of these, what is not open any more. */
export async function lettersDue(db: Queryable, limit: number): Promise<{ letters: TriageLetter[]; closed: JobId[] }> {
  const rows = await db.query<Row & { status: string }>(DUE, [db.now(), limit])
  return {
    letters: rows.filter(row => row.status === 'pending').map(toLetter),
    closed: rows.filter(row => row.status !== 'pending').map(row => row.id),
  }
}

/** How far the rules have looked. Each time that it is set back it is another one, so that nobody goes on from it unawares. */
export interface TriageProgress {
  /** Null: they begin again. */
  readonly micros: string | null
  readonly seq: string | null
}

const PROGRESS = sql`
  SELECT (extract(epoch FROM died_at) * 1000000)::bigint AS micros, seq FROM redrive.triage_progress`

export async function triageProgress(db: Queryable): Promise<TriageProgress> {
  const [row] = await db.query<ProgressRow>(PROGRESS)
  return toProgress(row)
}

interface ProgressRow {
  micros: string | number | null
  seq: string | number | null
}

const toProgress = ({ micros, seq }: ProgressRow = { micros: null, seq: null }): TriageProgress => ({
  micros: micros === null ? null : String(micros),
  seq: seq === null ? null : String(seq),
})

// Only if nobody set it back meanwhile. Not further than where late deaths can still appear.
const ADVANCE = sql`
  UPDATE redrive.triage_progress p
  SET died_at = least(timestamptz 'epoch' + $1::bigint * interval '1 microsecond',
        coalesce($3::timestamptz, now()) - ${String(LATE_MS)} * interval '1 millisecond'), seq = $2::bigint
  WHERE p.died_at IS NOT DISTINCT FROM timestamptz 'epoch' + $4::bigint * interval '1 microsecond'
    AND p.seq IS NOT DISTINCT FROM $5::bigint
  RETURNING (extract(epoch FROM died_at) * 1000000)::bigint AS micros, seq`

/** Remembers how far the look has come; undefined: a rule was changed, and it begins again. */
export async function advanceTriage(
  db: Queryable,
  from: TriageProgress,
  to: TriagePlace,
): Promise<TriageProgress | undefined> {
  const [row] = await db.query<ProgressRow>(ADVANCE, [to.micros, to.seq, db.now(), from.micros, from.seq])
  return row && toProgress(row)
}

// Locked in the order of their ids first, as everyone does who locks several.
const LOOK_AT = sql`
  WITH input AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json) AS i(id uuid, at double precision)
  ), locked AS MATERIALIZED (
    SELECT id FROM redrive.dead_letter WHERE id = ANY (ARRAY(SELECT id FROM input)) ORDER BY id FOR UPDATE
  )
  UPDATE redrive.dead_letter d SET triage_at = timestamptz 'epoch' + i.at * interval '1 millisecond'
  FROM input i WHERE d.id = i.id AND d.id = ANY (ARRAY(SELECT id FROM locked))`

/** When the rules have to look at these again, in milliseconds; null: when something changes. */
export async function lookAgain(db: Queryable, letters: readonly { id: JobId; at: number | null }[]): Promise<void> {
  if (letters.length > 0) await db.query(LOOK_AT, [JSON.stringify(letters)])
}

const NOW = sql`SELECT ${millis('coalesce($1::timestamptz, now())')} AS now`

/** The ledger's time, in milliseconds. */
export async function ledgerTime(db: Queryable): Promise<number> {
  const [row] = await db.query<{ now: number }>(NOW, [db.now()])
  return Number(row?.now)
}

interface Row {
  id: JobId
  queue: string
  name: string
  kind: Kind
  service: string | null
  fingerprint: string
  message: string
  triaged: string | null
  to_look_at: boolean
  died_at: number
}

const toLetter = (row: Row): TriageLetter => ({
  id: row.id,
  queue: row.queue,
  name: row.name,
  kind: row.kind,
  service: row.service ?? undefined,
  fingerprint: row.fingerprint,
  message: row.message,
  diedAt: row.died_at,
  toLookAt: row.to_look_at,
  triaged: (toJson(row.triaged) ?? {}) as Record<string, number>,
})
