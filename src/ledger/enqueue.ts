// Puts jobs in line: one statement for any number, in the caller's own transaction if it has one; one for each piece of many
// that are large. Wakes the workers of a lane only when nothing was waiting in it (pitfall 10). A large payload is laid
// apart (0017_payloads_apart.sql).
import { RedriveError } from '../domain/errors.js'
import type { JobId } from '../domain/ids.js'
import type { Enqueued, NewJob } from '../domain/job.js'
import { inPieces } from '../domain/pieces.js'
import { jsonList, textList, uuidList } from './binary-list.js'
import { hot, type Param, type Piece, type Queryable, sql } from './database.js'
import { listOf } from './rows.js'

const ENQUEUE = hot(sql`
  SELECT redrive.enqueue($1::timestamptz, $2, $3, $4, $5, $6::smallint, $7::smallint, $8::uuid[], $9::json, $10::json)`)

const ENQUEUE_ONE = hot(sql`
  SELECT redrive.enqueue_one($1::timestamptz, $2, $3, $4, $5, $6::smallint, $7::smallint, $8::uuid, $9::json, $10, $11, $12, $13) AS handed`)

const ENQUEUE_BEHIND = hot(sql`
  INSERT INTO redrive.job (id, state, queue, name, service, max_attempts, priority, payload, run_at, created_at, line)
  VALUES ($7::uuid, 'waiting', $2, $3, $4, $5::smallint, $6::smallint, $8::json, coalesce($1::timestamptz, now()),
          coalesce($1::timestamptz, now()), redrive.next_line($6::smallint))`)

const ENQUEUE_APART = hot(sql`
  SELECT redrive.enqueue_apart($1::timestamptz, $2, $3, $4, $5, $6::smallint, $7::smallint, $8::uuid[], $9::json, $10::json)`)

const ENQUEUE_LIST = hot(sql`
  SELECT redrive.enqueue_list($1::timestamptz, $2, $3, $4, $5, $6::smallint, $7::smallint, $8::uuid[], $9::json[])`)

const ENQUEUE_LIST_APART = hot(sql`
  WITH apart AS (INSERT INTO redrive.payload (id, body) SELECT unnest($10::uuid[]), unnest($11::text[]))
  SELECT redrive.enqueue_list($1::timestamptz, $2, $3, $4, $5, $6::smallint, $7::smallint, $8::uuid[], $9::json[])`)

/** Longer than this is large: Postgres would keep it in pieces. */
const LARGE_CHARS = 2_000
const isLarge = ({ payloadText }: NewJob): boolean => payloadText.length > LARGE_CHARS

// Keys are taken in their own order, so that two batches of the same keys do not wait for each other; places in line are as asked.
const ENQUEUE_UNIQUE = sql`
  WITH input AS MATERIALIZED (
    SELECT t.*, clock.now, nextval('redrive.job_seq') AS number,
           octet_length(t.payload::text) > ${String(LARGE_CHARS)} AS is_large,
           greatest(coalesce(t.run_at, clock.now + t.delay_ms * interval '1 millisecond'), clock.now) AS due
    FROM (SELECT coalesce($1::timestamptz, now()) AS now) clock, ROWS FROM (
      unnest($7::uuid[]), json_array_elements($8::json),
      json_to_recordset($9::json) AS (priority smallint, delay_ms double precision, run_at timestamptz, tenant text,
                                      user_id text, project text, unique_key text, trace text)
    ) AS t(id, payload, priority, delay_ms, run_at, tenant, user_id, project, unique_key, trace)
  ), added AS (
    INSERT INTO redrive.job (id, line, in_line, state, queue, name, service, max_attempts, priority, payload, run_at,
                             created_at, tenant, user_id, project, unique_key, trace)
    SELECT id, redrive.line_of(priority, number), due <= now,
           CASE WHEN due <= now THEN 'waiting' ELSE 'scheduled' END::redrive.job_state, $3, $4, $5, $6::smallint,
           priority, CASE WHEN NOT is_large THEN payload END, due, now, tenant, user_id, project, unique_key COLLATE "C", trace
    FROM input ORDER BY unique_key COLLATE "C", number
    ON CONFLICT (queue, unique_key) WHERE unique_key IS NOT NULL DO NOTHING
    RETURNING id, in_line
  ), apart AS (
    INSERT INTO redrive.payload (id, body) SELECT id, payload::text FROM input WHERE is_large AND id IN (SELECT id FROM added)
  )
  SELECT input.id AS asked, added.id IS NULL AS deduplicated,
         (SELECT CASE WHEN $2::text IS NOT NULL AND (SELECT bool_or(in_line) FROM added) AND coalesce((
                   SELECT j.state <> 'waiting' FROM redrive.job j WHERE j.queue = $3 AND j.name = $4 AND j.in_line
                   ORDER BY j.line DESC LIMIT 1), true)
                 THEN pg_notify($2, $3) END) AS woken,
         coalesce(added.id, (SELECT live.id FROM redrive.job live
                             WHERE live.queue = $3 AND live.unique_key = input.unique_key LIMIT 1)) AS id
  FROM input LEFT JOIN added ON added.id = input.id`

/** A key that a concurrent transaction takes or frees is invisible to one statement and visible to the next. */
const UNIQUE_TRIES = 5

const optionsOf = (job: NewJob) => ({
  priority: job.priority,
  delay_ms: job.delayMs,
  run_at: job.runAt,
  tenant: job.tenant,
  user_id: job.user,
  project: job.project,
  unique_key: job.uniqueKey,
  trace: job.trace,
})

/** What a NOTIFY can carry, in bytes, less what every job says of itself: numbers, times and ids. */
const MOST_SAID = 7_500
/** Of a character, in a payload and, where control characters are written out, elsewhere. */
const BYTES_OF_JSON = 4
const BYTES_OF_TEXT = 6

/** Whether a job can be handed over: due now, and short enough to be said, which nothing is that lies apart. */
export function canBeHandedOver(job: NewJob): boolean {
  if ((job.delayMs ?? job.runAt ?? job.uniqueKey) !== undefined) return false
  const { queue, name, service = '', tenant = '', user = '', project = '', trace = '' } = job
  const scope = tenant.length + user.length + project.length + trace.length
  const length = queue.length + name.length + service.length + scope
  return job.payloadText.length * BYTES_OF_JSON + length * BYTES_OF_TEXT < MOST_SAID
}

/** Where a single job went: to a worker that stood by; in line, where nobody waited; in line, behind others. */
export type Went = 'to a worker' | 'in line' | 'behind others'

/** One job, in no transaction but its own. */
export async function enqueueOne(db: Queryable, job: NewJob, channel: string): Promise<Went> {
  const { queue, name, service = null, maxAttempts = null, priority, id, payloadText } = job
  const { tenant = null, user = null, project = null, trace = null } = job
  const lane = [channel, queue, name, service, maxAttempts, priority]
  const params = [db.now(), ...lane, id, payloadText, tenant, user, project, trace]
  const [row] = await db.query<{ handed: boolean | null }>(ENQUEUE_ONE, params)
  if (row?.handed === true) return 'to a worker'
  return row?.handed === false ? 'in line' : 'behind others'
}

/** Whether a job can be put in line without asking anything: it is due now, and there is nothing to say of it that most jobs do not have. */
export const canGoBehind = (job: NewJob): boolean => job.uniqueKey === undefined && !hasOptions(job) && !isLarge(job)

/** One job, in no transaction but its own, behind others. Wakes nobody. */
export function enqueueBehind(db: Queryable, job: NewJob): Promise<unknown> {
  const { queue, name, service = null, maxAttempts = null, priority, id, payloadText } = job
  return db.query(ENQUEUE_BEHIND, [db.now(), queue, name, service, maxAttempts, priority, id, payloadText])
}

/** Jobs of one lane, all or none. `channel`: where to NOTIFY; null where nobody listens. */
export async function enqueue(db: Queryable, jobs: readonly NewJob[], channel: string | null): Promise<Enqueued[]> {
  const [first] = jobs
  if (!first) return []
  const lane = [channel, first.queue, first.name, first.service ?? null, first.maxAttempts ?? null] as const
  if (jobs.some(job => job.uniqueKey !== undefined)) return enqueueUnique(db, jobs, lane)
  const alike = jobs.every(job => job.priority === first.priority && !hasOptions(job))
  const common = [db.now(), ...lane, first.priority]
  const asText = (some: readonly NewJob[]) => {
    const options = alike ? null : JSON.stringify(some.map(optionsOf))
    const statement = some.some(isLarge) ? ENQUEUE_APART : ENQUEUE
    return { statement, params: [...common, ...idsAndPayloads(some), options] }
  }
  const asLists = (some: readonly NewJob[]) => {
    const large = some.filter(isLarge)
    if (large.length === 0) return { statement: ENQUEUE_LIST, params: [...common, ...listsOf(some)] }
    const apart = [uuidList(large.map(job => job.id)), textList(large.map(job => job.payloadText))]
    return { statement: ENQUEUE_LIST_APART, params: [...common, ...listsOf(some), ...apart] }
  }
  if (db.together && jobs.length > 1) {
    const write = alike ? asLists : asText
    await db.together(
      inPieces(jobs, job => job.payloadText.length, PIECE_CHARS).map(
        (piece): Piece =>
          () =>
            write(piece),
      ),
    )
  } else {
    const { statement, params } = asText(jobs)
    await db.query(statement, params)
  }
  return jobs.map(({ id }) => ({ id, deduplicated: false }))
}

/** So long may the payloads of a piece be, in all: a piece costs little, and a larger one is slower to move about. */
const PIECE_CHARS = 512 * 1024

/** What is large is missing: it lies apart. */
const listsOf = (jobs: readonly NewJob[]): [Uint8Array, Uint8Array] => [
  uuidList(jobs.map(job => job.id)),
  jsonList(jobs.map(job => (isLarge(job) ? null : job.payloadText))),
]

const hasOptions = ({ delayMs, runAt, tenant, user, project, trace }: NewJob): boolean =>
  (delayMs ?? runAt ?? tenant ?? user ?? project ?? trace) !== undefined

/** Payloads are JSON already: side by side they are a JSON list, with nothing to escape and nothing to parse twice. */
const idsAndPayloads = (jobs: readonly NewJob[]): [string, string] => [
  listOf(jobs.map(job => job.id)),
  `[${jobs.map(job => job.payloadText).join(',')}]`,
]

async function enqueueUnique(db: Queryable, jobs: readonly NewJob[], lane: readonly Param[]): Promise<Enqueued[]> {
  const results = new Map<JobId, Enqueued>()
  let left = jobs
  for (let tries = 0; left.length > 0; tries += 1) {
    if (tries === UNIQUE_TRIES) {
      throw new RedriveError(
        'UNIQUE_KEY_CONTENDED',
        `The unique key "${left[0]?.uniqueKey}" is taken and freed too fast`,
      )
    }
    const params = [db.now(), ...lane, ...idsAndPayloads(left), JSON.stringify(left.map(optionsOf))]
    const rows = await db.query<{ asked: JobId; id: JobId | null; deduplicated: boolean }>(ENQUEUE_UNIQUE, params)
    for (const { asked, id, deduplicated } of rows) if (id) results.set(asked, { id, deduplicated })
    left = left.filter(job => !results.has(job.id))
  }
  return jobs.map(({ id }) => results.get(id) as Enqueued)
}
