// Postgres itself carries the jobs: enqueue is an insert, a claim locks and marks, settling moves rows. Workers are
// woken by NOTIFY where it is possible, directly within one process, and look for themselves in any case.
import { type Clock, systemClock } from '../../domain/clock.js'
import type { Enqueued, NewJob } from '../../domain/job.js'
import { serviceOfNews } from '../../ledger/breaker.js'
import { claim, heldBy } from '../../ledger/claim.js'
import type { Database, ForeignClient, Queryable, Subscription } from '../../ledger/database.js'
import { enqueue } from '../../ledger/enqueue.js'
import { waitingIn } from '../../ledger/job.js'
import { ensureQueues } from '../../ledger/queue.js'
import { settlingShard } from '../../ledger/settle/tally.js'
import { recordStale, settle } from '../../ledger/settle.js'
import { wakeChannel } from '../../ledger/wake-channel.js'
import type { ConsumeOptions, Consumer, Transport } from '../transport.js'
import { Line } from './postgres-line.js'

export interface PostgresTransport extends Transport {
  /** Where NOTIFYs go; null where nobody can hear them. */
  readonly channel: string | null
  /** Wakes the consumers of this process. */
  wake(queue: string): void
  /** Tells that another process changed what is known of a service, or, without a name, that it may have. */
  onNews(listener: (service: string | undefined) => void): () => void
}

export function postgresTransport(db: Database, clock: Clock = systemClock): PostgresTransport {
  const consumers = new Set<ConsumeOptions>()
  const knownQueues = new Set<string>()
  const newsListeners = new Set<(service: string | undefined) => void>()
  const channel = wakeChannel(db)
  let subscription: Subscription | undefined

  const wake = (queue: string) => {
    for (const { lanes, onWake } of consumers) if (lanes.some(lane => lane.queue === queue)) onWake()
  }
  const heard = (message: string) => {
    const service = serviceOfNews(message)
    if (service === undefined) wake(message)
    else for (const listener of newsListeners) listener(service)
  }
  const wakeAll = () => {
    for (const { onWake } of consumers) onWake()
    for (const listener of newsListeners) listener(undefined)
  }

  // On our own connection even when the caller has a transaction: a queue's row must not be locked by strangers. The
  // embedded database has only one connection, and the caller is on it: there the row comes and goes with the caller's
  // transaction, and is made again next time.
  const makeKnown = async (jobs: readonly NewJob[], tx: ForeignClient | undefined) => {
    const unknown = [...new Set(jobs.map(job => job.queue))].filter(queue => !knownQueues.has(queue))
    if (unknown.length === 0) return
    if (tx && db.kind === 'embedded') return ensureQueues(db.within(tx), unknown)
    await ensureQueues(db, unknown)
    for (const queue of unknown) knownQueues.add(queue)
  }

  // All or none: one lane is one statement; several need a transaction around them.
  const enqueueLanes = async (jobs: readonly NewJob[], tx: ForeignClient | undefined) => {
    const lanes = byLane(jobs)
    const on = async (queryable: Queryable) => {
      const results: Enqueued[] = []
      for (const lane of lanes) results.push(...(await enqueue(queryable, lane, channel)))
      return results
    }
    const [only] = lanes
    if (tx) return on(db.within(tx))
    const oneStatement = lanes.length === 1 && (jobs.length === 1 || jobs.every(job => job.uniqueKey === undefined))
    return only && oneStatement ? enqueue(db, only, channel) : db.transaction(on)
  }

  return {
    capabilities: { transactional: true, wakes: channel !== null },
    channel,
    wake,
    onNews(listener) {
      newsListeners.add(listener)
      return () => newsListeners.delete(listener)
    },
    async publish(jobs: readonly NewJob[], tx?: ForeignClient): Promise<Enqueued[]> {
      await makeKnown(jobs, tx)
      const results = await enqueueLanes(jobs, tx)
      if (!tx) for (const queue of new Set(jobs.map(job => job.queue))) wake(queue)
      return results
    },
    consume(options): Consumer {
      consumers.add(options)
      if (channel !== null) subscription ??= db.listen(channel, { onMessage: heard, onUp: wakeAll })
      const line = new Line(clock)
      return {
        fetch: (demand, limit) => line.claim(demand, lanes => claim(db, options.session, lanes, limit)),
        held: () => heldBy(db, options.session),
        close: async () => void consumers.delete(options),
      }
    },
    async settle(batch, by) {
      const refused = await settle(db, batch, settlingShard(by.session, by.lane))
      // A note for people: failing to write it must not look like failing to settle.
      if (refused.length > 0) await recordStale(db, refused).catch(() => {})
      return refused
    },
    depth: queue => waitingIn(db, queue),
    async close() {
      consumers.clear()
      await subscription?.close()
    },
  }
}

/** Runs of jobs that share what a lane's jobs have in common, in their order. */
function byLane(jobs: readonly NewJob[]): NewJob[][] {
  const runs: NewJob[][] = []
  for (const job of jobs) {
    const run = runs.at(-1)
    if (run?.[0] && sameLane(run[0], job)) run.push(job)
    else runs.push([job])
  }
  return runs
}

const sameLane = (a: NewJob, b: NewJob): boolean =>
  a.queue === b.queue && a.name === b.name && a.service === b.service && a.maxAttempts === b.maxAttempts
