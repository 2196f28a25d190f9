// Adds a batch to the counts of what ended, in the same statement that ends it. `$3` is the settling lane's own shard.

type Counted = 'completed' | 'cancelled' | 'failed' | 'dead'

/** `source`: a CTE with a `queue` column, and a boolean column for each count except those that count every row. */
export const addToTally = (source: string, counts: Partial<Record<Counted, string>>): string => {
  const columns = Object.keys(counts)
  const sums = Object.values(counts).map(filter => `count(*) FILTER (WHERE ${filter})`)
  return `
  INSERT INTO redrive.tally (queue, day, shard, ${columns.join(', ')})
  SELECT queue, (coalesce($2::timestamptz, now()) AT TIME ZONE 'UTC')::date, $3::bigint, ${sums.join(', ')}
  FROM ${source} GROUP BY queue
  ON CONFLICT (queue, day, shard) DO UPDATE
  SET ${columns.map(column => `${column} = tally.${column} + excluded.${column}`).join(', ')}`
}

/** The rows of everything that settles without a session of its own. */
export const SHARED_SHARD = '0'

/** Concurrent settling lanes of one session; the janitor finds a shard's session by dividing by it. */
const LANES_PER_SESSION = 16n

export const settlingShard = (session: string, lane: number): string =>
  String(BigInt(session) * LANES_PER_SESSION + BigInt(lane))
