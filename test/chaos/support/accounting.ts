// The proof at the end of every chaos test: every job is in exactly one place, nothing acknowledged is missing, nothing
// was settled twice, and a job ran again only where the run before it was cut short. Complaints are words, so that a
// failing test shows which job broke which promise.
import type { Books, Entry } from './books.js'
import type { Told, ToldOf } from './protocol.js'

export interface Evidence {
  readonly books: Books
  /** Ids that an enqueue returned. */
  readonly acknowledged: Iterable<string>
  /** The state in which a job has to end. */
  readonly expected?: ReadonlyMap<string, string>
  /** How many jobs were in enqueues that failed: these may be there or not. */
  readonly doubtful?: number
  readonly told: readonly Told[]
  /** Processes that were killed, frozen or cut off. */
  readonly excused: ReadonlySet<number>
  /** Off: some jobs may still be live. */
  readonly allEnded?: boolean
}

/** Everything that does not add up; [] is the proof. */
export function complaints(evidence: Evidence): string[] {
  return [...places(evidence), ...sums(evidence), ...settlements(evidence), ...repeats(evidence)]
}

function* places({ books, acknowledged, expected, doubtful = 0, allEnded = true }: Evidence): Generator<string> {
  const byId = grouped(books.entries, entry => entry.id)
  const known = new Set(acknowledged)
  for (const id of known) if (!byId.has(id)) yield `${id} was acknowledged and is nowhere`
  for (const [id, entries] of byId) {
    const shown = entries
      .map(({ place, state, reason }) => `${place} (${[state, reason].filter(Boolean).join(': ')})`)
      .join(' and ')
    if (entries.length > 1) yield `${id} is in ${entries.length} places: ${shown}`
    if (allEnded && entries.some(({ place }) => place === 'live')) yield `${id} has not ended: ${shown}`
    else if (allEnded && !entries.some(({ state }) => state === (expected?.get(id) ?? state)))
      yield `${id} had to end as ${expected?.get(id)}, and is ${shown}`
  }
  const unasked = [...byId.keys()].filter(id => !known.has(id))
  if (unasked.length > doubtful)
    yield `${unasked.length} jobs are there that nobody was given, at most ${doubtful} may be`
}

function* sums({ books }: Evidence): Generator<string> {
  for (const state of ['completed', 'cancelled', 'dead'] as const) {
    const jobs = books.entries.filter(entry => entry.state === state).length
    const counted = books.tally[state]
    if (jobs !== counted) yield `${jobs} jobs are ${state}, but ${counted} were counted when they ended`
  }
}

/** An end that was written is the only one, and nothing ran after it. */
function* settlements({ books, told }: Evidence): Generator<string> {
  const entries = new Map(books.entries.map(entry => [entry.id, entry]))
  const ends = told.filter((news): news is ToldOf<'settled'> => news.event === 'settled' && ENDS[news.as] !== undefined)
  const starts = grouped(only(told, 'started'), run => run.id)
  for (const [id, settled] of grouped(ends, end => end.id)) {
    const [first] = settled as [ToldOf<'settled'>]
    if (settled.length > 1) yield `${id} was settled ${settled.length} times`
    const entry = entries.get(id) as Entry | undefined
    if (entry && entry.state !== ENDS[first.as]) yield `${id} was settled as ${first.as}, but is ${entry.state}`
    for (const { attempt } of starts.get(id) ?? [])
      if (attempt > first.attempt) yield `${id} ran as attempt ${attempt} after attempt ${first.attempt} had ended it`
  }
}

const ENDS: Readonly<Record<string, string | undefined>> = { complete: 'completed', bury: 'dead', cancel: 'cancelled' }

/** Every run but the last was cut short: its process has an excuse, or its handler threw. */
export function* repeats({ told, excused }: Pick<Evidence, 'told' | 'excused'>): Generator<string> {
  const thrown = new Set(only(told, 'threw').map(runOf))
  for (const [id, runs] of grouped(only(told, 'started'), run => run.id)) {
    const ordered = [...runs].sort((a, b) => a.at - b.at || a.attempt - b.attempt)
    for (const run of ordered.slice(0, -1)) {
      if (excused.has(run.pid) || thrown.has(runOf(run))) continue
      yield `${id} ran again although attempt ${run.attempt} in process ${run.pid} was not cut short`
    }
  }
}

const runOf = ({ id, attempt, pid }: { id: string; attempt: number; pid: number }) => `${id} ${attempt} ${pid}`

/** Jobs that were started again after a run that came to no end of its own. */
export function repeated(told: readonly Told[]): string[] {
  const ended = new Set([...only(told, 'threw'), ...only(told, 'finished')].map(runOf))
  return [...grouped(only(told, 'started'), run => run.id)]
    .filter(([, runs]) => runs.length > 1 && runs.some(run => !ended.has(runOf(run))))
    .map(([id]) => id)
}

const only = <Event extends Told['event']>(told: readonly Told[], event: Event): ToldOf<Event>[] =>
  told.filter((news): news is ToldOf<Event> => news.event === event)

function grouped<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const item of items) {
    const group = groups.get(key(item))
    if (group) group.push(item)
    else groups.set(key(item), [item])
  }
  return groups
}
