// What was set at run time for the queues and job names of a worker, in one question: it is asked every other second.
import type { Json } from '../domain/json.js'
import { type Queryable, sql } from './database.js'
import type { PolicyScope, PolicyTarget } from './policy.js'
import { toJson } from './rows.js'

export interface LaneSettings extends PolicyTarget {
  /** Null: there is none, or none any more. */
  readonly policy: Json
  /** Of a queue. */
  readonly paused: boolean
}

const READ = sql`
  SELECT t.scope, t.target, p.policy::text AS policy, q.paused_at IS NOT NULL AS paused
  FROM json_to_recordset($1::json) AS t(scope text, target text COLLATE "C")
  LEFT JOIN LATERAL (
    SELECT policy FROM redrive.policy WHERE scope = t.scope AND target = t.target ORDER BY version DESC LIMIT 1
  ) p ON true
  LEFT JOIN redrive.queue q ON t.scope = 'queue' AND q.name = t.target`

export async function laneSettings(db: Queryable, targets: readonly PolicyTarget[]): Promise<LaneSettings[]> {
  const rows = await db.query<{ scope: PolicyScope; target: string; policy: string | null; paused: boolean }>(READ, [
    JSON.stringify(targets),
  ])
  return rows.map(row => ({ ...row, policy: toJson(row.policy) }))
}
