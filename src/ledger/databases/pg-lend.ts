// A connection of a pool, lent to one piece of work. While it is lent, its own errors come here rather than to the pool; one
// that broke is thrown away instead of given back.
import type pg from 'pg'

/** `broke`: to be told of an error after which nobody can tell what state the connection is in. */
export type LentWork<T> = (client: pg.PoolClient, broke: (error: Error) => void) => Promise<T>
export type Lend = <T>(work: LentWork<T>) => Promise<T>

export async function lend<T>(pool: Pick<pg.Pool, 'connect'>, work: LentWork<T>): Promise<T> {
  let broken: Error | undefined
  const broke = (error: Error) => {
    broken = error
  }
  // By a callback: a promise would leave a moment in which nobody listens, and an error that nobody hears ends the process.
  const client = await new Promise<pg.PoolClient>((resolve, reject) => {
    pool.connect((error, lent) => {
      if (!lent) return reject(error)
      lent.on('error', broke)
      resolve(lent)
    })
  })
  try {
    return await work(client, broke)
  } finally {
    client.off('error', broke)
    client.release(broken)
  }
}
