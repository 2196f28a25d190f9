// How it went over a range of time: by queue, kind and service, and what fails most.
import { invalid } from '../domain/errors.js'
import { isKind, KINDS, type Kind } from '../domain/failure.js'
import { checkName } from '../domain/names.js'
import type { Queryable } from '../ledger/database.js'
import { makeGroups } from '../ledger/group-notice.js'
import {
  databaseNow,
  type EndedCount,
  endedByDay,
  type FailureCount,
  type FailureReason,
  failureCounts,
  failureReasons,
  type ReasonFilter,
  type TimeRange,
} from '../ledger/statistics.js'
import { type Desk, pageLimit } from './context.js'

/** The last 24 hours unless said otherwise. */
export interface StatisticsRange {
  readonly since?: Date
  readonly until?: Date
}

export interface FailureShare {
  readonly failures: number
  readonly deaths: number
  /** Of all failures in the range. */
  readonly share: number
}

export interface Statistics {
  readonly since: Date
  readonly until: Date
  readonly failures: number
  readonly deaths: number
  /**
   * False: there is more than was counted. Either more than is looked at, and then what failed last was counted; or causes
   * that failed for the first time this very moment.
   */
  readonly exact: boolean
  /** The most frequent first. */
  readonly byKind: readonly (FailureShare & { readonly kind: Kind })[]
  /** Null: failures that name no service. */
  readonly byService: readonly (FailureShare & { readonly service: string | null })[]
  readonly byQueue: readonly (FailureShare & { readonly queue: string })[]
  /** What ended, on the whole days (UTC) that the range touches: this is how finished jobs are counted. */
  readonly days: readonly (EndedCount & {
    /** Of the attempts that ended; null: none did. */
    readonly successRate: number | null
  })[]
}

export interface FailureReasons {
  readonly since: Date
  readonly until: Date
  readonly items: readonly FailureReason[]
  readonly exact: boolean
}

const DAY_MS = 24 * 3_600_000
const REASONS = 20

export function statistics({ db }: Desk) {
  return {
    async statistics(range: StatisticsRange = {}): Promise<Statistics> {
      const asked = await rangeOf(db, range)
      await makeGroups(db)
      const [{ counts, exact }, days] = await Promise.all([failureCounts(db, asked), endedByDay(db, asked)])
      return {
        ...asked,
        failures: sum(counts, 'failures'),
        deaths: sum(counts, 'deaths'),
        exact,
        byKind: by(counts, 'kind').map(([kind, count]) => ({ kind, ...count })),
        byService: by(counts, 'service').map(([service, count]) => ({ service, ...count })),
        byQueue: by(counts, 'queue').map(([queue, count]) => ({ queue, ...count })),
        days: days.map(day => {
          const attempts = day.completed + day.failed
          return { ...day, successRate: attempts <= 0 ? null : Math.max(0, day.completed / attempts) }
        }),
      }
    },

    /** What fails most: one entry for each cause, with its share, when it was last seen, and a sample. */
    async failureReasons(
      asked: StatisticsRange & ReasonFilter & { readonly limit?: number } = {},
    ): Promise<FailureReasons> {
      const { since, until, limit = REASONS, ...filter } = asked
      checkFilter(filter)
      const range = await rangeOf(db, { ...(since && { since }), ...(until && { until }) })
      const most = pageLimit(limit)
      await makeGroups(db)
      return { ...range, ...(await failureReasons(db, range, filter, most)) }
    },
  }
}

export type StatisticsDesk = ReturnType<typeof statistics>

async function rangeOf(db: Queryable, { since, until }: StatisticsRange): Promise<TimeRange> {
  for (const [what, time] of Object.entries({ since, until })) {
    if (time !== undefined && !(time instanceof Date && Number.isFinite(time.getTime()))) {
      throw invalid(what, time, 'a valid Date')
    }
  }
  const to = until ?? (await databaseNow(db))
  const from = since ?? new Date(to.getTime() - DAY_MS)
  if (from >= to) throw invalid('since', from.toISOString(), `before until (${to.toISOString()})`)
  return { since: from, until: to }
}

function checkFilter({ queue, kind, service, ...unknown }: ReasonFilter): void {
  const [other] = Object.keys(unknown)
  if (other !== undefined) throw invalid('A filter', other, 'one of since, until, queue, kind, service, limit')
  if (queue !== undefined) checkName('queue', queue)
  if (service !== undefined) checkName('service', service)
  if (kind !== undefined && !isKind(kind)) throw invalid('kind', kind, `one of ${KINDS.join(', ')}`)
}

const sum = (counts: readonly FailureCount[], of: 'failures' | 'deaths'): number =>
  counts.reduce((total, count) => total + count[of], 0)

/** Sums by one column, the most frequent first. */
function by<Key extends 'kind' | 'service' | 'queue'>(
  counts: readonly FailureCount[],
  key: Key,
): [FailureCount[Key], FailureShare][] {
  const all = sum(counts, 'failures')
  const groups = new Map<FailureCount[Key], FailureCount[]>()
  for (const count of counts) groups.set(count[key], [...(groups.get(count[key]) ?? []), count])
  return [...groups]
    .map(([of, part]): [FailureCount[Key], FailureShare] => {
      const failures = sum(part, 'failures')
      return [of, { failures, deaths: sum(part, 'deaths'), share: failures / Math.max(1, all) }]
    })
    .sort(([, a], [, b]) => b.failures - a.failures)
}
