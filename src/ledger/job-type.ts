// What the code says about each job name of a queue, announced by its workers: so that whoever rescues or explains a job
// decides by its own policy even without its code.
import type { Json } from '../domain/json.js'
import { type Queryable, sql } from './database.js'
import { toJson } from './rows.js'

export interface JobType {
  readonly name: string
  readonly queue: string
  readonly service: string | null
  readonly policy: Json
}

const ANNOUNCE = sql`
  INSERT INTO redrive.job_type AS known (name, queue, service, policy, announced_at)
  SELECT name, queue, service, policy::json, coalesce($2::timestamptz, now())
  FROM json_to_recordset($1::json) AS t(name text COLLATE "C", queue text COLLATE "C", service text, policy text)
  ORDER BY queue, name
  ON CONFLICT (queue, name) DO UPDATE
  SET service = excluded.service, policy = excluded.policy, announced_at = excluded.announced_at`

export async function announceJobTypes(db: Queryable, types: readonly JobType[]): Promise<void> {
  const rows = types.map(type => ({ ...type, policy: JSON.stringify(type.policy) }))
  await db.query(ANNOUNCE, [JSON.stringify(rows), db.now()])
}

const READ = sql`SELECT name, queue, service, policy::text AS policy FROM redrive.job_type LIMIT 10000`

export async function jobTypes(db: Queryable): Promise<JobType[]> {
  const rows = await db.query<Omit<JobType, 'policy'> & { policy: string }>(READ)
  return rows.map(row => ({ ...row, policy: toJson(row.policy) }))
}
