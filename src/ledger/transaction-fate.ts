// What became of a transaction whose commit was asked for and not answered: the connection broke, and it may have come to
// pass or not. Postgres remembers for as long as anyone here asks: hundreds of millions of transactions.
import { type Queryable, sql } from './database.js'

/** `pending`: the server has not found out yet that nobody is there; it may still commit. */
export type TransactionFate = 'committed' | 'aborted' | 'pending'

/** As a column of a statement that writes: the transaction that it is in. */
export const TRANSACTION_ID = 'pg_current_xact_id()::text'

// One that is later than all that have ended is not asked for: it may be unknown to a server that took over from another.
const STATUS = sql`
  SELECT CASE WHEN $1::xid8 < pg_snapshot_xmax(pg_current_snapshot()) THEN pg_xact_status($1::xid8)
    ELSE 'in progress' END AS status`

/** One that is too long ago to be remembered is taken as committed. */
export async function fateOf(db: Queryable, transactionId: string): Promise<TransactionFate> {
  const [row] = await db.query<{ status: 'committed' | 'aborted' | 'in progress' | null }>(STATUS, [transactionId])
  const status = row?.status ?? 'committed'
  return status === 'in progress' ? 'pending' : status
}
