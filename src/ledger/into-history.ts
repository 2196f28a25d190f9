// Statements that write into the history. A row on its way into the default partition is refused when the partition of
// its day is attached at that very moment; nothing is wrong with it, and asked again it finds its place.
import type { Param, Queryable, Statement } from './database.js'

export async function intoHistory<Row>(db: Queryable, statement: Statement, params: readonly Param[]): Promise<Row[]> {
  try {
    return await db.query<Row>(statement, params)
  } catch (error) {
    if (!isMovedPartition(error)) throw error
    return db.query<Row>(statement, params)
  }
}

const CHECK_VIOLATION = '23514'

/** A partition's own constraint has no name, unlike every CHECK. */
const isMovedPartition = (error: unknown): boolean => {
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  return code === CHECK_VIOLATION && !constraint
}
