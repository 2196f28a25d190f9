// The fingerprints that a group speaks for: its own, and those of what was merged into it.
import { type Queryable, sql } from './database.js'

/** A source `member` with their `id`s. `head`: an expression for the group's own. */
export const members = (head: string): string => `(
  SELECT ${head} AS id UNION ALL SELECT merged.fingerprint FROM redrive.failure_group merged WHERE merged.merged_into = ${head}
) member`

const MEMBERS = sql`
  SELECT member.id FROM (
    SELECT coalesce((SELECT coalesce(merged_into, fingerprint) FROM redrive.failure_group WHERE fingerprint = $1), $1) AS id
  ) head CROSS JOIN LATERAL ${members('head.id')}`

/** Those of the group that this one belongs to, its own first; a group that nobody made has only its own. */
export async function membersOf(db: Queryable, id: string): Promise<string[]> {
  return (await db.query<{ id: string }>(MEMBERS, [id])).map(row => row.id)
}
