// A page of jobs, wherever they are: live, in the history, dead. Newest first by id, which begins with the time it was made
// at: every one of the three tables has that order in an index, so a page reads as many rows as it looks at, with or without
// statistics (pitfall 24). A filter is asked of `LOOKED_AT` jobs at most; a short page then has a next one.
import type { JobId } from '../domain/ids.js'
import { FINISHED_STATES, LIVE_STATES, type State } from '../domain/lifecycle.js'
import { type Queryable, sql } from './database.js'
import type { Count, Page } from './dead-letter.js'
import { millis, optional, toDate } from './rows.js'

export interface JobFilter {
  readonly state?: State
  readonly queue?: string
  readonly name?: string
  readonly tenant?: string
}

/** Without its payload, which may be large: ask for the one job. */
export interface JobBrief {
  readonly id: JobId
  readonly state: State
  readonly queue: string
  readonly name: string
  readonly priority: number
  readonly attempt: number
  readonly service?: string
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly createdAt: Date
  /** When it became or becomes claimable; only while live. */
  readonly runAt?: Date
  readonly finishedAt?: Date
}

const LOOKED_AT = 5_000

const SHARED = 'id, queue, name, service, tenant, user_id, project'
const IS_NEXT = '($5::uuid IS NULL OR id < $5::uuid) ORDER BY id DESC LIMIT (SELECT $6::integer)'
const oneOf = (states: readonly State[]) =>
  `($1::text IS NULL OR $1::text IN (${states.map(state => `'${state}'`).join(', ')}))`

// Whether a dead letter is where its job is (see job.ts) is asked like the filter: as a condition it would invite another index.
const LOOKED = `
  looked AS MATERIALIZED (
    SELECT *, here AND ($1::text IS NULL OR state::text = $1) AND ($2::text IS NULL OR queue = $2) AND ($3::text IS NULL OR name = $3)
      AND ($4::text IS NULL OR tenant = $4) AS hit
    FROM (
      (SELECT ${SHARED}, state, priority, attempt, created_at, run_at, NULL::timestamptz AS finished_at, true AS here
       FROM redrive.job WHERE ${oneOf(LIVE_STATES)} AND ${IS_NEXT})
      UNION ALL
      (SELECT ${SHARED}, state, priority, attempt, created_at, NULL, finished_at, true
       FROM redrive.finished_job WHERE ${oneOf(FINISHED_STATES)} AND ${IS_NEXT})
      UNION ALL
      (SELECT ${SHARED}, 'dead', job_priority, total_attempts, job_created_at, NULL, died_at,
         status IN ('pending', 'permanently_failed') AND redrives = recovery_attempts
       FROM redrive.dead_letter WHERE ${oneOf(['dead'])} AND ${IS_NEXT})
    ) job ORDER BY id DESC LIMIT (SELECT $6::integer)
  )`

const PAGE = sql`
  WITH ${LOOKED}, found AS MATERIALIZED (SELECT * FROM looked WHERE hit ORDER BY id DESC LIMIT $7::integer),
  rest AS MATERIALIZED (
    SELECT id AS rest FROM looked ORDER BY id DESC
    LIMIT CASE WHEN (SELECT count(*) FROM found) < $7::integer THEN 1 ELSE 0 END OFFSET $6::integer - 1
  )
  SELECT page.*, (SELECT rest FROM rest) AS rest FROM (SELECT) one LEFT JOIN (
    SELECT ${SHARED}, state::text AS state, priority, attempt, ${millis('created_at')} AS created_at, ${millis('run_at')} AS run_at,
      ${millis('finished_at')} AS finished_at FROM found
  ) page ON true ORDER BY page.id DESC`

const COUNT = sql`
  WITH ${LOOKED} SELECT count(*) AS looked_at, count(*) FILTER (WHERE hit) AS matching FROM looked`

export async function listJobs(
  db: Queryable,
  filter: JobFilter,
  { limit, after }: { limit: number; after?: JobId },
): Promise<Page<JobBrief> & { readonly total: Count }> {
  const { state = null, queue = null, name = null, tenant = null } = filter
  const asked = [state, queue, name, tenant]
  const rows = await db.query<Row>(PAGE, [...asked, after ?? null, LOOKED_AT, limit + 1])
  const jobs = rows.filter(row => row.id !== null)
  const items = jobs.slice(0, limit)
  const next = (jobs.length > limit ? items.at(-1)?.id : rows[0]?.rest) ?? null
  const tells = after === undefined && next === null
  return {
    items: items.map(toBrief),
    ...optional('nextCursor', next),
    total: tells ? { value: items.length, exact: true } : await countJobs(db, asked),
  }
}

async function countJobs(db: Queryable, asked: readonly (string | null)[]): Promise<Count> {
  type Counted = { looked_at: string | number; matching: string | number }
  const [row] = await db.query<Counted>(COUNT, [...asked, null, LOOKED_AT])
  return { value: Number(row?.matching), exact: Number(row?.looked_at) < LOOKED_AT }
}

type Text = string | null
interface Row {
  id: JobId
  state: State
  queue: string
  name: string
  priority: number
  attempt: number
  service: Text
  tenant: Text
  user_id: Text
  project: Text
  created_at: number
  run_at: number | null
  finished_at: number | null
  rest: Text
}

const toBrief = (row: Row): JobBrief => ({
  id: row.id,
  state: row.state,
  queue: row.queue,
  name: row.name,
  priority: row.priority,
  attempt: row.attempt,
  createdAt: toDate(row.created_at),
  ...optional('service', row.service),
  ...optional('tenant', row.tenant),
  ...optional('user', row.user_id),
  ...optional('project', row.project),
  ...optional('runAt', row.run_at === null ? null : toDate(row.run_at)),
  ...optional('finishedAt', row.finished_at === null ? null : toDate(row.finished_at)),
})
