// The channel that every process of one ledger listens on. A message is the name of a queue that may have work.
import type { Database } from './database.js'

/** Null for the embedded database: there is nobody else to tell. */
export const wakeChannel = (db: Database): string | null => (db.kind === 'server' ? `${db.schema}_wake` : null)
