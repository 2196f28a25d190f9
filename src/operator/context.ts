// What an operator's action needs: the ledger, and who is acting. The actor is written into the audit of every change.
import { invalid, RedriveError } from '../domain/errors.js'
import { isJobId, type JobId } from '../domain/ids.js'
import { cap, LIMITS } from '../domain/limits.js'
import type { Database } from '../ledger/database.js'

export interface Desk {
  readonly db: Database
  /** Tells the workers of this process that a queue may have work; others hear of it through the ledger. */
  readonly wake: (queue: string) => void
}

/** Who acts, and why. */
export interface Acting {
  readonly actor?: string
  readonly reason?: string
}

export const actorOf = ({ actor = 'library' }: Acting): string => cap(actor, LIMITS.nameChars)

export function jobId(id: string): JobId {
  if (!isJobId(id)) throw invalid('The id', id, 'a UUID')
  return id.toLowerCase() as JobId
}

export const notFound = (what: string): RedriveError => new RedriveError('NOT_FOUND', `There is no ${what}`)

/** A limit for lists, as the contract has it. */
export function pageLimit(limit = 50): number {
  if (!(Number.isInteger(limit) && limit >= 1 && limit <= 200)) {
    throw invalid('limit', limit, 'a whole number from 1 to 200')
  }
  return limit
}
