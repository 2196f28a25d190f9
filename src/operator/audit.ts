// Who changed what: what was written about every change, and what else is worth writing down.
import { invalid } from '../domain/errors.js'
import { cap, LIMITS } from '../domain/limits.js'
import { checkName } from '../domain/names.js'
import { type AuditEntry, type AuditRecord, countAudit, readAudit, writeAudit } from '../ledger/audit.js'
import type { Count, Page } from '../ledger/dead-letter.js'
import { type Desk, pageLimit } from './context.js'

export interface AuditFilter {
  readonly targetType?: string
  /** With `targetType`. */
  readonly target?: string
}

const COUNTED_UP_TO = 10_000
const CURSOR = /^\d{1,18}$/

export function audit({ db }: Desk) {
  return {
    /** Newest first: all of it, or what was written about one thing. */
    async list(filter: AuditFilter = {}, page: { limit?: number; cursor?: string } = {}): Promise<Page<AuditRecord>> {
      const { targetType, target } = filter
      if ((targetType === undefined) !== (target === undefined)) {
        throw invalid('A filter', targetType ?? target, 'both targetType and target, or neither')
      }
      if (targetType !== undefined) checkName('targetType', targetType)
      const { cursor } = page
      if (cursor !== undefined && !CURSOR.test(cursor)) throw invalid('cursor', cursor, 'one that a list returned')
      const limit = pageLimit(page.limit)
      const of = targetType !== undefined && target !== undefined ? { targetType, target } : {}
      const found = await readAudit(db, { ...of, ...(cursor !== undefined && { before: cursor }), limit: limit + 1 })
      const items = found.slice(0, limit)
      const last = items.at(-1)
      return { items, ...(found.length > limit && last && { nextCursor: last.id }) }
    },

    /** Up to 10,000. */
    count: (filter: AuditFilter = {}): Promise<Count> => countAudit(db, filter, COUNTED_UP_TO),

    /** For what changes nothing in the ledger by itself: a refused request, a recovery run that was asked for. */
    write: (entry: AuditEntry): Promise<void> =>
      writeAudit(db, {
        ...entry,
        actor: cap(entry.actor, LIMITS.nameChars),
        target: cap(entry.target, LIMITS.keyChars),
      }),
  }
}

export type Audit = ReturnType<typeof audit>
