// Group commit: the ends of attempts are written together. What has gathered is flushed as soon as a lane is free,
// never by waiting for a timer; while the database is away, everything is kept and tried again.
import { type Clock, type Random, sleep } from '../domain/clock.js'
import { isCarriedLease, type Lease } from '../domain/ids.js'
import { MOST_TOGETHER } from '../domain/pieces.js'
import type { Settlement } from '../domain/settlement.js'

export interface SettlerOptions {
  readonly settle: (batch: readonly Settlement[], lane: number) => Promise<Settlement[]>
  /** An end that the ledger cannot store gets another one in its place. */
  readonly instead: (settlement: Settlement, error: unknown) => Settlement
  /** What is settled on one lane is written in its order, however much of it is on its way: nobody need wait for an answer. */
  readonly inOrder?: boolean
  readonly clock: Clock
  readonly random: Random
  readonly onError: (error: unknown) => void
  /** Some ends were written. */
  readonly onWritten?: () => void
}

/** Called with true when written, with false when refused: the job is not ours any more. With the end as it was written. */
export type Done<Ended extends Settlement> = (settled: boolean, ended: Ended) => void

export interface Settler {
  write<Ended extends Settlement>(ended: Ended, done: Done<Ended>): void
  /** The same, as a promise. */
  settle(settlement: Settlement): Promise<boolean>
  /** How many ends are not written yet. */
  readonly pending: number
  /** The claims whose ends are not written yet, or never will be: their jobs have run. */
  leases(): Lease[]
  /** Resolves when everything is written, or when the signal aborts; what is left then is left to recovery. */
  drain(signal: AbortSignal): Promise<void>
}

type Lane = 0 | 1

interface Item {
  settlement: Settlement
  replaced?: true
  readonly done: Done<Settlement>
}

const LARGEST_BATCH = 1_000
/**
 * How much work, in successes, must wait until a batch is sent behind the one that is being written, so that the ledger need not wait for us when
 * it is done with that; and until a second lane opens, where it is far behind: another connection has to learn every statement first, and where handlers
 * and ledger share processors, two that write take turns (docs/decisions/0033, 0037).
 */
const WORTH_SENDING = 600
const WORTH_A_LANE = 2_500
/** What an end is for the ledger, in successes: with an attempt to be written down, three to four of them (docs/decisions/0036). */
const workOf = ({ settlement: { decision } }: Item): number => (decision.type === 'complete' ? 1 : 4)
const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 2_000

export function createSettler(options: SettlerOptions): Settler {
  const { settle, instead, inOrder = false, clock, random, onError, onWritten } = options
  const waiting: Item[] = []
  /** How many batches are on their way, by lane. */
  const sent: Record<Lane, number> = [0, 0]
  const givenUp = new AbortController()
  const flying = new Set<readonly Item[]>()
  const unwritten: Lease[] = []
  let inFlight = 0
  /** Of what waits. */
  let work = 0
  let scheduled = false
  let onIdle: (() => void) | undefined

  const schedule = () => {
    if (scheduled) return
    scheduled = true
    clock.soon(() => {
      scheduled = false
      for (let lane = nextLane(); lane !== undefined; lane = nextLane()) void flush(lane)
    })
  }

  const nextLane = (): Lane | undefined => {
    if (waiting.length === 0) return undefined
    if (sent[0] === 0 || (inOrder && sent[0] === 1 && work >= WORTH_SENDING)) return 0
    return sent[1] === 0 && work >= WORTH_A_LANE ? 1 : undefined
  }

  const flush = async (lane: Lane) => {
    sent[lane] += 1
    const items = waiting.splice(0, batchSize(waiting))
    for (const item of items) work -= workOf(item)
    inFlight += items.length
    flying.add(items)
    // A batch of one sort is one statement: it is written whole or not at all, and tried again as such.
    const groups = bySort(items)
    // What brokers carried is written on whatever connection is free: there is no order to rely on.
    if (inOrder && !items.some(isCarried)) await Promise.all(groups.map(group => writeAll(group, lane)))
    else for (const group of groups) await writeAll(group, lane)
    flying.delete(items)
    inFlight -= items.length
    sent[lane] -= 1
    onWritten?.()
    if (waiting.length > 0) schedule()
    else if (inFlight === 0) onIdle?.()
  }

  const writeAll = async (items: Item[], lane: number): Promise<void> => {
    for (let failures = 0; !givenUp.signal.aborted; failures += 1) {
      try {
        const refused = new Set(
          await settle(
            items.map(item => item.settlement),
            lane,
          ),
        )
        for (const item of items) item.done(!refused.has(item.settlement), item.settlement)
        return
      } catch (error) {
        onError(error)
        if (isUnstorable(error)) return writeApart(items, lane, error)
        const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures)
        await sleep(clock, pauseMs * (0.5 + random() / 2), givenUp.signal)
      }
    }
  }

  /** One end that cannot be stored must not keep the others from being written (pitfall 20). */
  const writeApart = async (items: Item[], lane: number, error: unknown): Promise<void> => {
    const [only] = items
    if (only && items.length === 1) {
      // Not even the replacement: it stays with its session, whose end leaves it to recovery.
      if (only.replaced) {
        unwritten.push(only.settlement.lease)
        return only.done(false, only.settlement)
      }
      only.settlement = instead(only.settlement, error)
      only.replaced = true
      return writeAll([only], lane)
    }
    const middle = Math.ceil(items.length / 2)
    await writeAll(items.slice(0, middle), lane)
    await writeAll(items.slice(middle), lane)
  }

  const add = <Ended extends Settlement>(ended: Ended, done: Done<Ended>) => {
    const item: Item = { settlement: ended, done: done as Done<Settlement> }
    waiting.push(item)
    work += workOf(item)
    schedule()
  }

  return {
    write: add,
    settle: settlement => new Promise(resolve => add(settlement, resolve)),
    get pending() {
      return waiting.length + inFlight
    },
    leases: () => [...unwritten, ...[...waiting, ...[...flying].flat()].map(({ settlement }) => settlement.lease)],
    async drain(signal) {
      if (waiting.length + inFlight > 0 && !signal.aborted) {
        await new Promise<void>(resolve => {
          onIdle = resolve
          signal.addEventListener('abort', () => resolve(), { once: true })
        })
      }
      givenUp.abort()
    },
  }
}

/** The results of a batch travel as one text. */
const batchSize = (waiting: readonly Item[]): number => {
  let text = 0
  let count = 0
  for (const { settlement } of waiting) {
    if (count === LARGEST_BATCH || text > MOST_TOGETHER) break
    count += 1
    if (settlement.outcome.type === 'succeeded') text += settlement.outcome.size ?? 0
  }
  return count
}

const bySort = (items: Item[]): Item[][] => {
  const first = items[0] && sortOf(items[0])
  if (items.every(item => sortOf(item) === first)) return [items]
  const groups = new Map<string, Item[]>()
  for (const item of items) {
    const sort = sortOf(item)
    const group = groups.get(sort)
    if (group) group.push(item)
    else groups.set(sort, [item])
  }
  return [...groups.values()]
}

const isCarried = ({ settlement }: Item): boolean => isCarriedLease(settlement.lease)

const sortOf = ({ settlement: { decision, lease } }: Item): string =>
  isCarriedLease(lease) ? `carried ${decision.type}` : decision.type

/** Postgres says that the data itself is the trouble: classes 22 (data), 23 (constraint) and 54 (limits). */
const isUnstorable = (error: unknown): boolean => /^(22|23|54)/.test(String((error as { code?: unknown })?.code))
