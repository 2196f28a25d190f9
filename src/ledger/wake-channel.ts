// The channels that the processes of one ledger listen on.
import { randomBytes } from 'node:crypto'
import type { Database } from './database.js'

/** Every process listens on this one; a message is the name of a queue that may have work. Null for the embedded database: nobody else is there. */
export const wakeChannel = (db: Database): string | null => (db.kind === 'server' ? `${db.schema}_wake` : null)

/** Jobs are said on this one, to the process that made it up: nobody must be able to guess it. */
export const secretChannel = (): string => `redrive_${randomBytes(16).toString('hex')}`
