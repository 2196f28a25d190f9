// What the ledger says about every job, read with plain SQL on a connection that no chaos touches.
import { administer } from '../../support/databases.js'
import type { Child } from './child.js'

export interface Entry {
  readonly id: string
  readonly place: 'live' | 'finished' | 'dead letter'
  readonly state: string
  readonly attempt: number
  readonly lost: number
  readonly interruptions: number
  /** Why it is dead or cancelled. */
  readonly reason: string | null
}

export interface Books {
  readonly entries: readonly Entry[]
  /** What the statements that end jobs counted while they did. */
  readonly tally: Readonly<Record<'completed' | 'cancelled' | 'dead', number>>
}

export const ENTRIES = `
  SELECT id::text, 'live' AS place, state::text, attempt, lost::integer, interruptions, NULL AS reason FROM redrive.job
  UNION ALL
  SELECT id::text, 'finished', state::text, attempt, lost::integer, interruptions, reason FROM redrive.finished_job
  UNION ALL
  SELECT id::text, 'dead letter', 'dead', total_attempts, lost::integer, 0, reason FROM redrive.dead_letter
  WHERE status IN ('pending', 'permanently_failed')`

export const TALLY = `
  SELECT coalesce(sum(completed), 0)::integer AS completed, coalesce(sum(cancelled), 0)::integer AS cancelled,
         coalesce(sum(dead), 0)::integer AS dead FROM redrive.tally`

export async function readBooks(query: (text: string) => Promise<unknown[]>): Promise<Books> {
  const entries = (await query(ENTRIES)) as Entry[]
  const [tally] = (await query(TALLY)) as Books['tally'][]
  return { entries, tally: tally as Books['tally'] }
}

export const booksAt = (url: string): Promise<Books> => readBooks(text => administer(url, text))

/** How many jobs are in each live state. */
export async function liveStates(url: string): Promise<Record<string, number>> {
  const rows = await administer(url, 'SELECT state::text, count(*)::integer AS jobs FROM redrive.job GROUP BY state')
  return Object.fromEntries((rows as { state: string; jobs: number }[]).map(({ state, jobs }) => [state, jobs]))
}

export async function liveJobs(url: string): Promise<number> {
  const [row] = (await administer(url, 'SELECT count(*)::integer AS jobs FROM redrive.job')) as { jobs: number }[]
  return row?.jobs ?? 0
}

/** Jobs that a worker, the only one, holds and has not started. */
export async function claimedAhead(url: string, worker: Child): Promise<string[]> {
  const rows = await administer(url, "SELECT id::text FROM redrive.job WHERE state = 'active'")
  const started = new Set(worker.told.flatMap(news => (news.event === 'started' ? [news.id] : [])))
  return (rows as { id: string }[]).map(({ id }) => id).filter(id => !started.has(id))
}
