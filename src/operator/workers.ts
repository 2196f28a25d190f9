// Which workers there are.
import { invalid } from '../domain/errors.js'
import type { Page } from '../ledger/dead-letter.js'
import { listWorkers, type WorkerView } from '../ledger/worker-list.js'
import { type Desk, pageLimit } from './context.js'

export interface WorkerListOptions {
  readonly limit?: number
  readonly cursor?: string
  /** Also those that have ended. */
  readonly ended?: boolean
}

const CURSOR = /^\d{1,18}$/

export function workers({ db }: Desk) {
  return {
    /** Newest first. */
    async list({ limit, cursor, ended = false }: WorkerListOptions = {}): Promise<Page<WorkerView>> {
      if (cursor !== undefined && !CURSOR.test(cursor)) throw invalid('cursor', cursor, 'one that a list returned')
      const most = pageLimit(limit)
      const found = await listWorkers(db, { limit: most + 1, ended, ...(cursor !== undefined && { before: cursor }) })
      const items = found.slice(0, most)
      const last = items.at(-1)
      return { items, ...(found.length > most && last && { nextCursor: last.id }) }
    },
  }
}

export type Workers = ReturnType<typeof workers>
