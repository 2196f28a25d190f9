// A connection of a pool, lent to one piece of work. While it is lent, its own errors come here rather than to the pool; one
// that broke is thrown away instead of given back.
import type pg from 'pg'

/** `broke`: to be told of an error after which nobody can tell what state the connection is in. */
export async function lend<T>(
  pool: Pick<pg.Pool, 'connect'>,
  work: (client: pg.PoolClient, broke: (error: Error) => void) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  const broke = (error: Error) => {
    broken = error
  }
  client.on('error', broke)
  try {
    return await work(client, broke)
  } finally {
    client.off('error', broke)
    client.release(broken)
  }
}
