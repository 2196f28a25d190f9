// Which workers there are.
import { invalid } from '../domain/errors.js'
import type { Count, Page } from '../ledger/dead-letter.js'
import { countWorkers, listWorkers, type WorkerView } from '../ledger/worker-list.js'
import { type Desk, pageLimit } from './context.js'

export interface WorkerListOptions {
  readonly limit?: number
  readonly cursor?: string
  /** Also those that have ended. */
  readonly ended?: boolean
}

const COUNTED_UP_TO = 10_000
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

    /** Up to 10,000. */
    count: ({ ended = false }: Pick<WorkerListOptions, 'ended'> = {}): Promise<Count> =>
      countWorkers(db, ended, COUNTED_UP_TO),
  }
}

export type Workers = ReturnType<typeof workers>
