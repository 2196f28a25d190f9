// Takes waiting jobs for a session: many in one statement, each with a new lease, never one that another holds.
// A lane is one job name of one queue; its index entries are in the order of the line, so that a name this worker
// cannot run (no handler, no free slot) costs nothing to step over.
import type { JobId, Lease, SessionId } from '../domain/ids.js'
import type { ClaimedJob } from '../domain/job.js'
import { type Database, eachRow, hot, sql } from './database.js'
import { listOf, payloadApart } from './rows.js'

export interface Lane {
  readonly queue: string
  readonly name: string
}

export interface LaneDemand extends Lane {
  /** At most so many of this lane. */
  readonly limit: number
  /** The place in line to begin at: what lies before it was seen to be taken. */
  readonly after?: string
}

const DRAW = hot(sql`SELECT redrive.draw($1::timestamptz, $2::bigint, $3, $4, $5::integer, $6::bigint) AS jobs`)
const DRAW_LANES = hot(sql`SELECT redrive.draw_lanes($1::timestamptz, $2::bigint, $3::json, $4::integer) AS jobs`)

/** Jobs as redrive.draw brings them: many in one text, because drivers take longer for a field than for what is in it. */
interface Parcel {
  readonly jobs: string
}
const BETWEEN_JOBS = '\x1e'
const BETWEEN_FIELDS = '\x1f'

/** The payload is last, and missing where it lies apart. */
const PACKED = `concat(redrive.packed(j.ctid, j), CASE WHEN j.payload IS NULL THEN ${payloadApart('j')} END) AS jobs`

/** In the order of redrive.packed. Empty: it has none. */
// biome-ignore format: one line for what belongs together
type Fields = [
  place: string, id: JobId, lease: Lease, line: string, queue: string, name: string, priority: string, attempt: string,
  created: string, claimed: string, due: string, maxAttempts: string, service: string,
  uniqueKey: string, tenant: string, user: string, project: string, trace: string, heldBy: string,
  past: string, payload: string,
]

/** Of a plain job, in the order of redrive.drawn. */
// biome-ignore format: one line for what belongs together
type PlainFields = [
  place: string, id: JobId, lease: Lease, line: string, created: string, maxAttempts: string, service: string, payload: string,
]
const PLAIN = 8
const USUAL_PRIORITY = 5

type Unpacked = { -readonly [Key in keyof ClaimedJob]: ClaimedJob[Key] }

/** A job as redrive.packed tells of it. */
export const unpackJob = (text: string): ClaimedJob => unpackFields(text.split(BETWEEN_FIELDS) as Fields)

// By number: taking a list apart by names costs a call for each as long as the code is cold.
function unpackFields(told: Fields): Unpacked {
  const job = fresh(told[0], told[1], told[2], told[3], told[4], told[5], Number(told[8]), Number(told[9]), told[20])
  job.priority = Number(told[6])
  job.attempt = Number(told[7])
  if (told[10]) job.waitingSince = Number(told[10])
  if (told[11]) job.maxAttempts = Number(told[11])
  if (told[12]) job.service = told[12]
  if (told[13]) job.uniqueKey = JSON.parse(told[13])
  if (told[14]) job.tenant = JSON.parse(told[14])
  if (told[15]) job.user = JSON.parse(told[15])
  if (told[16]) job.project = JSON.parse(told[16])
  if (told[17]) job.trace = JSON.parse(told[17])
  if (told[18]) job.heldBy = JSON.parse(told[18])
  if (told[19]) Object.assign(job, pastOf(told[19]))
  return job
}

/** The jobs of a text: what they have in common, then one after the other. */
function unpackParcel({ jobs: text }: Parcel, into: ClaimedJob[]): void {
  const texts = text.split(BETWEEN_JOBS)
  const [claimed, queue, name] = (texts[0] as string).split(BETWEEN_FIELDS) as [string, string, string]
  const claimedAt = Number(claimed)
  for (let index = 1; index < texts.length; index += 1) {
    const fields = (texts[index] as string).split(BETWEEN_FIELDS)
    if (fields.length !== PLAIN) {
      const job = unpackFields(fields as Fields)
      job.apart = job.payloadText === ''
      into.push(job)
      continue
    }
    const told = fields as PlainFields
    const job = fresh(told[0], told[1], told[2], told[3], queue, name, Number(told[4]), claimedAt, told[7])
    if (told[5]) job.maxAttempts = Number(told[5])
    if (told[6]) job.service = told[6]
    job.apart = job.payloadText === ''
    into.push(job)
  }
}

/** At its first attempt. Made field by field: spreading would cost more than the rest of a claim on this side. */
function fresh(
  receipt: string,
  id: JobId,
  lease: Lease,
  line: string,
  queue: string,
  name: string,
  createdAt: number,
  claimedAt: number,
  payloadText: string,
): Unpacked {
  return {
    id,
    lease,
    receipt,
    line,
    queue,
    name,
    priority: USUAL_PRIORITY,
    payloadText,
    apart: false,
    attempt: 1,
    snoozes: 0,
    holds: 0,
    interruptions: 0,
    lost: 0,
    redrives: 0,
    createdAt,
    firstClaimedAt: claimedAt,
    claimedAt,
    waitingSince: createdAt,
    suspect: false,
  }
}

function pastOf(past: string): Partial<ClaimedJob> {
  const [firstClaimedAt, snoozes, holds, interruptions, lost, redrives] = past.split(',').map(Number)
  return {
    firstClaimedAt,
    snoozes,
    holds,
    interruptions,
    lost,
    redrives,
    suspect: (lost as number) > 0,
  } as Partial<ClaimedJob>
}

/** Up to `limit` jobs, first in line first; without the payloads that lie apart. */
export async function claim(
  db: Database,
  session: SessionId,
  lanes: readonly LaneDemand[],
  limit: number,
): Promise<ClaimedJob[]> {
  const [only] = lanes
  if (!only || limit < 1) return []
  const parcels =
    lanes.length === 1
      ? await db.query<Parcel>(DRAW, [
          db.now(),
          session,
          only.queue,
          only.name,
          Math.min(limit, only.limit),
          only.after ?? null,
        ])
      : await db.query<Parcel>(DRAW_LANES, [db.now(), session, JSON.stringify(lanes), limit])
  const jobs: ClaimedJob[] = []
  for (const parcel of parcels) unpackParcel(parcel, jobs)
  return inOrder(jobs)
}

// Not prepared: what is the best way to look them up while the table is small is not when it has grown.
const READ = sql`
  SELECT of.id::text AS id, (SELECT p.body FROM redrive.payload p WHERE p.id = of.id) AS body FROM unnest($1::uuid[]) of(id)`

/** Reads the payloads of these jobs, which lie apart, and tells of each as it comes. One that is not there is left empty, which no handler can read. */
export async function readPayloads(
  db: Database,
  jobs: readonly ClaimedJob[],
  onRead: (job: ClaimedJob) => void = () => {},
): Promise<void> {
  if (jobs.length === 0) return
  const unread = new Map((jobs as readonly Unpacked[]).map(job => [job.id, job]))
  const ids = listOf([...unread.keys()])
  await eachRow<{ id: JobId; body: string | null }>(db, READ, [ids], ({ id, body }) => {
    const job = unread.get(id)
    if (!job) return
    job.payloadText = body ?? ''
    job.apart = false
    onRead(job)
  })
}

/** They come as they lie in the table, which is mostly their order already. */
function inOrder(jobs: ClaimedJob[]): ClaimedJob[] {
  let sorted = true
  for (let index = 1; sorted && index < jobs.length; index += 1) {
    sorted = byLine(jobs[index - 1] as ClaimedJob, jobs[index] as ClaimedJob) < 0
  }
  return sorted ? jobs : jobs.sort(byLine)
}

/** Places exceed what a number holds exactly. Of whole numbers as text, the longer is the larger. */
const byLine = ({ line: a = '' }: ClaimedJob, { line: b = '' }: ClaimedJob): number =>
  a.length - b.length || (a < b ? -1 : Number(a > b))

const HELD = sql`
  SELECT ${PACKED} FROM redrive.job j WHERE j.in_line AND j.session_id = $1::bigint AND j.state = 'active'
  ORDER BY j.lease`

/** Everything a session holds, as it was claimed: for a worker that missed the answer to a claim. */
export async function heldBy(db: Database, session: SessionId): Promise<ClaimedJob[]> {
  return (await db.query<Parcel>(HELD, [session])).map(({ jobs }) => unpackJob(jobs))
}

const MARK_STARTED = sql`
  UPDATE redrive.job SET started = true WHERE id = $1::uuid AND lease = $2::bigint RETURNING id`

/** Records that a suspect job is about to run, so that a crash is blamed on it and not on its neighbours. */
export async function markStarted(db: Database, job: { id: JobId; lease: Lease }): Promise<boolean> {
  return (await db.query(MARK_STARTED, [job.id, job.lease])).length === 1
}

// An index that finds the jobs of a session would cost every claim; a scan of the lines costs only a session's end.
const ORPHANS = sql`
  SELECT ${PACKED}, j.started, (SELECT s.worker FROM redrive.session s WHERE s.id = j.session_id) AS worker
  FROM redrive.job j
  WHERE j.in_line AND j.state = 'active' AND j.session_id = ANY ($1::bigint[])
  ORDER BY j.lease LIMIT $2::integer`

export interface Orphan extends ClaimedJob {
  /** False: it was in its dead worker's buffer and surely never ran. True: it ran, or may have. */
  readonly mayHaveRun: boolean
  readonly worker: string
}

/** Running jobs of sessions that have ended: nobody is working on them any more. */
export async function orphans(db: Database, ended: readonly SessionId[], limit: number): Promise<Orphan[]> {
  if (ended.length === 0) return []
  const rows = await db.query<Parcel & { started: boolean; worker: string | null }>(ORPHANS, [listOf(ended), limit])
  return rows.map(row => {
    const job = unpackJob(row.jobs)
    return { ...job, mayHaveRun: row.started || !job.suspect, worker: row.worker ?? 'an unknown worker' }
  })
}
