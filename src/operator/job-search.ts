// A page of jobs, for people: newest first, wherever they are.
import { invalid } from '../domain/errors.js'
import { STATES } from '../domain/lifecycle.js'
import { LIMITS } from '../domain/limits.js'
import { type JobBrief, type JobFilter, listJobs } from '../ledger/job-list.js'
import { type Desk, jobId, pageLimit } from './context.js'

export function jobSearch({ db }: Desk) {
  return async (filter: JobFilter = {}, page: { readonly limit?: number; readonly cursor?: string } = {}) => {
    const { state, ...texts } = filter
    if (state !== undefined && !STATES.includes(state)) throw invalid('state', state, `one of ${STATES.join(', ')}`)
    for (const [what, text] of Object.entries(texts)) {
      if (text !== undefined && (typeof text !== 'string' || text.length > LIMITS.keyChars || text.includes('\0'))) {
        throw invalid(what, text, `text of at most ${LIMITS.keyChars} characters`)
      }
    }
    const { limit, cursor } = page
    return listJobs(db, filter, {
      limit: pageLimit(limit),
      ...(cursor !== undefined && { after: jobId(cursor) }),
    })
  }
}

export type JobSearch = ReturnType<typeof jobSearch>
export type { JobBrief, JobFilter }
