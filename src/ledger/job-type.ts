// What the code says about each job name of a queue, announced by its workers: so that whoever rescues or explains a job
// decides by its own policy even without its code.
import type { Json } from '../domain/json.js'
import { type Queryable, sql } from './database.js'
import { toJson } from './rows.js'

export interface JobType {
  readonly name: string
  readonly queue: string
  readonly service: string | null
  /** What its definition says. */
  readonly policy: Json
  /** What the settings of its worker's process say for jobs that say nothing themselves. */
  readonly settings: Json
}

const ANNOUNCE = sql`
  INSERT INTO redrive.job_type AS known (name, queue, service, policy, settings, announced_at)
  SELECT name, queue, service, policy::json, settings::json, coalesce($2::timestamptz, now())
  FROM json_to_recordset($1::json)
    AS t(name text COLLATE "C", queue text COLLATE "C", service text, policy text, settings text)
  ORDER BY queue, name
  ON CONFLICT (queue, name) DO UPDATE
  SET service = excluded.service, policy = excluded.policy, settings = excluded.settings,
      announced_at = excluded.announced_at`

export async function announceJobTypes(db: Queryable, types: readonly JobType[]): Promise<void> {
  const rows = types.map(type => ({
    ...type,
    policy: JSON.stringify(type.policy),
    settings: JSON.stringify(type.settings),
  }))
  await db.query(ANNOUNCE, [JSON.stringify(rows), db.now()])
}

const COLUMNS = 'name, queue, service, policy::text AS policy, settings::text AS settings'
const READ = sql`SELECT ${COLUMNS} FROM redrive.job_type LIMIT 10000`
const READ_ONE = sql`SELECT ${COLUMNS} FROM redrive.job_type WHERE queue = $1 AND name = $2`
const OF_NAME = sql`SELECT ${COLUMNS} FROM redrive.job_type WHERE name = $1 ORDER BY announced_at DESC LIMIT 1`

type Row = Omit<JobType, 'policy' | 'settings'> & { policy: string; settings: string }
const toType = (row: Row): JobType => ({ ...row, policy: toJson(row.policy), settings: toJson(row.settings) })

export async function jobTypes(db: Queryable): Promise<JobType[]> {
  return (await db.query<Row>(READ)).map(toType)
}

/** As it was last announced in this queue or, without a queue, in any. */
export async function jobType(db: Queryable, name: string, queue?: string): Promise<JobType | undefined> {
  const [row] = await (queue === undefined ? db.query<Row>(OF_NAME, [name]) : db.query<Row>(READ_ONE, [queue, name]))
  return row && toType(row)
}
