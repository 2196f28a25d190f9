// What a person may do about dead letters: look, retry, close, annotate, remove. Every change is audited in the
// transaction that makes it.
import { invalid, RedriveError } from '../domain/errors.js'
import { isKind, KINDS } from '../domain/failure.js'
import type { JobId } from '../domain/ids.js'
import { RECOVERY_STATUSES } from '../domain/lifecycle.js'
import { cap, LIMITS } from '../domain/limits.js'
import { type Attempt, attemptsOf } from '../ledger/attempt.js'
import { writeAudit } from '../ledger/audit.js'
import type { Queryable } from '../ledger/database.js'
import {
  type Count,
  countDeadLetters,
  type DeadLetter,
  getDeadLetter,
  isCursor,
  listDeadLetters,
  type Page,
} from '../ledger/dead-letter.js'
import {
  type AnnotatedBefore,
  type Annotation,
  annotate,
  markFailed,
  removeDeadLetters,
} from '../ledger/dead-letter-change.js'
import { type DeadLetterCount, deadLetterCounts } from '../ledger/dead-letter-count.js'
import type { DeadLetterFilter, Sought } from '../ledger/dead-letter-search.js'
import { membersOf } from '../ledger/group-members.js'
import {
  batchOf,
  freezeInBatches,
  preview,
  type RedriveResult,
  redrive,
  redriveMany,
  sendBack,
} from '../ledger/redrive.js'
import { wakeChannel } from '../ledger/wake-channel.js'
import { type Acting, actorOf, type Desk, jobId, notFound, pageLimit } from './context.js'

export interface ListOptions {
  readonly limit?: number
  readonly cursor?: string
  readonly offset?: number
  /** How the number of those that match is come by: a place for somebody who remembers it. */
  readonly counting?: (count: () => Promise<Count>) => Promise<Count>
}

/** Many at once: by a filter, or `all: true` said in full. */
export type Selection = (DeadLetterFilter & { readonly all?: never }) | { readonly all: true }

const COUNTED_UP_TO = 10_000
/** As far as letters are counted; a cursor goes on from there, and costs the same however far it is. */
export const LARGEST_OFFSET = COUNTED_UP_TO
const BATCH = 1_000
const MOST_AT_ONCE = 100_000
const LANES = 2
/** So many can be named one by one. */
export const MOST_BY_ID = 500

export function deadLetters(desk: Desk) {
  const { db } = desk
  const channel = wakeChannel(db)

  return {
    /** Newest death first. */
    async list(filter: DeadLetterFilter = {}, options: ListOptions = {}): Promise<Page<DeadLetter> & { total: Count }> {
      checkFilter(filter)
      const { counting = count => count() } = options
      const sought = await soughtBy(db, filter)
      const page = await listDeadLetters(db, sought, { limit: pageLimit(options.limit), ...checkPlace(options) })
      const total = page.total ?? (await counting(() => countDeadLetters(db, sought, COUNTED_UP_TO)))
      return { ...page, total }
    },

    /** One, with every attempt it ever had. */
    async get(id: string): Promise<DeadLetter & { attempts: readonly Attempt[] }> {
      const found = await getDeadLetter(db, jobId(id))
      if (!found) throw notFound(`dead letter ${id}`)
      return { ...found, attempts: await attemptsOf(db, found.id) }
    },

    /** Sends one back to run. It stays, as `redriving`, until its job has ended. */
    async retry(id: string, acting: Acting = {}): Promise<DeadLetter> {
      const asked = jobId(id)
      const result = await db.transaction(async tx => {
        const was = await getDeadLetter(tx, asked)
        const done = await redrive(tx, [asked], channel)
        if (was && done.redriven.length === 1) {
          const before = { status: was.status }
          await writeAudit(tx, { ...entry('retry', asked, acting), before, after: { status: 'redriving' } })
        }
        return done
      })
      const found = await getDeadLetter(db, asked)
      if (!found) throw notFound(`dead letter ${id}`)
      if (result.conflicts.length > 0) {
        const message = `Another live job of queue ${found.queue} holds the unique key "${found.uniqueKey}"`
        throw new RedriveError('UNIQUE_KEY_TAKEN', message, { details: { id, uniqueKey: found.uniqueKey } })
      }
      if (result.redriven.length === 0) throw notPending(found)
      desk.wake(found.queue)
      return found
    },

    /** Sends these back, all in one transaction. What could not be is told: no error, since the others went. */
    async retryEach(ids: readonly string[], acting: Acting = {}): Promise<RedriveResult & { notOpen: JobId[] }> {
      if (ids.length > MOST_BY_ID) throw invalid('The number of ids', ids.length, `at most ${MOST_BY_ID}`)
      const asked = [...new Set(ids.map(jobId))]
      const { redriven, conflicts, queues } = await db.transaction(async tx => {
        const result = await redriveMany(tx, batchOf(asked), channel)
        const after = { redriven: [...result.redriven], conflicts: [...result.conflicts] }
        if (result.redriven.length > 0) {
          await writeAudit(tx, { ...entry('retry many', `${asked.length} by their ids`, acting), after })
        }
        return result
      })
      for (const queue of queues) desk.wake(queue)
      const answered = new Set([...redriven, ...conflicts])
      return { redriven, conflicts, notOpen: asked.filter(id => !answered.has(id)) }
    },

    /** Sends back all open ones that match now. What dies later does not join (pitfall 7); conflicts are reported. */
    async retryMany(selection: Selection, acting: Acting = {}): Promise<RedriveResult> {
      const batches = await freezeInBatches(db, await selectedBy(db, selection), MOST_AT_ONCE, BATCH)
      const audit = entry('retry many', JSON.stringify(selection).slice(0, 500), acting)
      const redriven: JobId[] = []
      const conflicts: JobId[] = []
      await inLanes(batches, async batch => {
        const done = await sendBack(db, batch, channel, audit)
        redriven.push(...done.redriven)
        conflicts.push(...done.conflicts)
        for (const queue of done.queues) desk.wake(queue)
      })
      return { redriven, conflicts }
    },

    /** How many `retryMany` would send back. */
    async preview(selection: Selection): Promise<number> {
      return preview(db, await selectedBy(db, selection), MOST_AT_ONCE)
    },

    /** Closes one for good. */
    async markFailed(id: string, acting: Acting & { reason: string }): Promise<DeadLetter> {
      const asked = jobId(id)
      if (!acting.reason?.trim()) throw invalid('reason', acting.reason, 'a text that says why')
      const before = await db.transaction(async tx => {
        const was = await markFailed(tx, asked, cap(acting.reason, LIMITS.reasonChars))
        const after = { status: 'permanently_failed' }
        if (was) await writeAudit(tx, { ...entry('mark failed', asked, acting), before: was, after })
        return was
      })
      const found = await getDeadLetter(db, asked)
      if (!found) throw notFound(`dead letter ${id}`)
      if (!before) throw notPending(found)
      return found
    },

    /** `ifStill`: asked of what is there now; where it says no, nothing is changed. */
    async annotate(
      id: string,
      change: Annotation,
      { ifStill, ...acting }: Acting & { readonly ifStill?: (now: AnnotatedBefore) => boolean } = {},
    ): Promise<DeadLetter> {
      const asked = jobId(id)
      const checked = checkAnnotation(change)
      const before = await db.transaction(async tx => {
        const was = await annotate(tx, asked, checked)
        if (was && ifStill?.(was) === false) {
          throw new RedriveError('VERSION_CONFLICT', `The notes of dead letter ${id} were changed meanwhile`)
        }
        if (was)
          await writeAudit(tx, { ...entry('annotate', asked, acting), before: { ...was }, after: { ...checked } })
        return was
      })
      const found = before && (await getDeadLetter(db, asked))
      if (!found) throw notFound(`dead letter ${id}`)
      return found
    },

    /** Removes one with its attempts; what it was stays in the audit. */
    async remove(id: string, acting: Acting = {}): Promise<void> {
      const asked = jobId(id)
      const found = await getDeadLetter(db, asked)
      if (!found) throw notFound(`dead letter ${id}`)
      const removed = await db.transaction(async tx => {
        const ids = await removeDeadLetters(tx, [asked])
        const { queue, name, payload, kind, message, totalAttempts, notes = null } = found
        const before = { queue, name, payload, kind, message, totalAttempts, notes }
        if (ids.length > 0) await writeAudit(tx, { ...entry('remove', asked, acting), before })
        return ids
      })
      if (removed.length === 0) throw notPending(found)
    },

    /** Counts by queue, status and kind. */
    statistics: (): Promise<DeadLetterCount[]> => deadLetterCounts(db),
  }
}

/** `work` for each, some side by side. After a failure nothing more begins, and what has begun ends first. */
async function inLanes<Part>(parts: readonly Part[], work: (part: Part) => Promise<void>): Promise<void> {
  const left = [...parts]
  const lane = async () => {
    for (let part = left.shift(); part !== undefined; part = left.shift()) {
      await work(part).catch(error => {
        left.length = 0
        throw error
      })
    }
  }
  const lanes = await Promise.allSettled(Array.from({ length: LANES }, lane))
  for (const ended of lanes) if (ended.status === 'rejected') throw ended.reason
}

export type DeadLetters = ReturnType<typeof deadLetters>

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'dead_letter' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})

const notPending = ({ id, status }: DeadLetter): RedriveError =>
  new RedriveError('NOT_PENDING', `Dead letter ${id} is ${status}, not open`, { details: { id, status } })

/** A group stands for the fingerprints that belong to it now. */
async function soughtBy(db: Queryable, { group, ...filter }: DeadLetterFilter): Promise<Sought> {
  if (group === undefined) return filter
  const { fingerprint } = filter
  const fingerprints = await membersOf(db, group)
  // Both are asked for: a fingerprint that is not of the group finds nothing.
  return {
    ...filter,
    fingerprints: fingerprint === undefined ? fingerprints : fingerprints.filter(f => f === fingerprint),
  }
}

async function selectedBy(db: Queryable, selection: Selection) {
  const { status = 'pending', ...filter } = selectionFilter(selection)
  return { ...(await soughtBy(db, filter)), status }
}

function selectionFilter({ all, ...filter }: Selection): DeadLetterFilter {
  checkFilter(filter)
  const given = Object.values(filter).some(value => value !== undefined)
  if (all === true && !given) return {}
  if (given && all === undefined) return filter
  throw new RedriveError('FILTER_REQUIRED', 'Say which dead letters, or `all: true` for every open one')
}

const FILTERS: Readonly<Record<keyof DeadLetterFilter, true>> = {
  queue: true,
  name: true,
  kind: true,
  service: true,
  status: true,
  fingerprint: true,
  group: true,
  assignedTo: true,
  since: true,
  until: true,
  text: true,
}

/** A misspelt filter would filter nothing: it is refused, not passed over (pitfall 21). */
function checkFilter(filter: DeadLetterFilter): void {
  const unknown = Object.keys(filter).find(key => !Object.hasOwn(FILTERS, key))
  if (unknown !== undefined) throw invalid('A filter', unknown, `one of ${Object.keys(FILTERS).join(', ')}`)
  const { kind, status, since, until, ...texts } = filter
  if (kind !== undefined && !isKind(kind)) throw invalid('kind', kind, `one of ${KINDS.join(', ')}`)
  if (status !== undefined && !RECOVERY_STATUSES.includes(status)) {
    throw invalid('status', status, `one of ${RECOVERY_STATUSES.join(', ')}`)
  }
  for (const [what, time] of Object.entries({ since, until })) {
    if (time !== undefined && !(time instanceof Date && Number.isFinite(time.getTime()))) {
      throw invalid(what, time, 'a valid Date')
    }
  }
  for (const [what, text] of Object.entries(texts)) {
    if (text !== undefined && !(typeof text === 'string' && text.length <= LIMITS.keyChars && !text.includes('\0'))) {
      throw invalid(what, text, `text of at most ${LIMITS.keyChars} characters`)
    }
  }
}

function checkPlace({ cursor, offset }: ListOptions): { cursor?: string; offset?: number } {
  if (cursor !== undefined && !isCursor(cursor)) throw invalid('cursor', cursor, 'one that a list returned')
  if (offset !== undefined && !(Number.isInteger(offset) && offset >= 0 && offset <= LARGEST_OFFSET)) {
    throw invalid('offset', offset, `a whole number from 0 to ${LARGEST_OFFSET}; further on, use the cursor`)
  }
  return { ...(cursor !== undefined && { cursor }), ...(offset !== undefined && { offset }) }
}

function checkAnnotation(change: Annotation): Annotation {
  const { notes, assignedTo, priority } = change
  if (priority !== undefined && !(Number.isInteger(priority) && priority >= 0 && priority <= 10)) {
    throw invalid('priority', priority, 'a whole number from 0 to 10')
  }
  return {
    ...(notes !== undefined && { notes: notes === null ? null : cap(notes, LIMITS.notesChars) }),
    ...(assignedTo !== undefined && { assignedTo: assignedTo === null ? null : cap(assignedTo, LIMITS.nameChars) }),
    ...(priority !== undefined && { priority }),
  }
}
