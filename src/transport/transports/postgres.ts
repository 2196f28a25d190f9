// Postgres itself carries the jobs: enqueue is an insert, a claim locks and marks, settling moves rows. Workers are
// woken by NOTIFY where it is possible, directly within one process, and look for themselves in any case. One that stands by is
// handed a job by the insert itself, and hears of it on a channel of its process.
import { type Clock, systemClock } from '../../domain/clock.js'
import type { Enqueued, NewJob } from '../../domain/job.js'
import { serviceOfNews } from '../../ledger/breaker.js'
import { claim, heldBy, readPayloads } from '../../ledger/claim.js'
import { type Database, type ForeignClient, onLine, type Queryable, type Subscription } from '../../ledger/database.js'
import { canBeHandedOver, canGoBehind, enqueue, enqueueBehind, enqueueOne } from '../../ledger/enqueue.js'
import { handOver, takersOf } from '../../ledger/hand-over.js'
import { waitingIn } from '../../ledger/job.js'
import { ensureQueues } from '../../ledger/queue.js'
import { settlingShard } from '../../ledger/settle/tally.js'
import { recordStale, settle } from '../../ledger/settle.js'
import { handedOver, ring, stand, standBy } from '../../ledger/standby.js'
import { secretChannel, wakeChannel } from '../../ledger/wake-channel.js'
import type { ConsumeOptions, Consumer, Transport } from '../transport.js'
import { Echo } from './postgres-echo.js'
import { Line } from './postgres-line.js'
import { Streaks } from './postgres-streaks.js'
import { Takers } from './postgres-takers.js'

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
  const ours = secretChannel()
  const claims = onLine(db, 'claims')
  const payloads = onLine(db, 'payloads')
  /** By the settler's connection. */
  const ends = [onLine(db, 'ends'), onLine(db, 'more ends')]
  let subscription: Subscription | undefined
  const echo = new Echo(clock, () => ring(db, ours))
  // One at a time: commits that NOTIFY wait for each other in the server, flush by flush. Whoever has much to enqueue must not.
  let isHanding = false
  // What is not said is found by looking, as any wake-up.
  const streaks = new Streaks(clock, async queue => {
    if (channel !== null) await ring(db, channel, queue).catch(() => {})
  })
  const takers = new Takers(clock, lane => takersOf(db, lane))

  const wake = (queue: string) => {
    for (const { lanes, onWake } of consumers) if (lanes.some(lane => lane.queue === queue)) onWake()
  }
  const heard = (message: string, on: string) => {
    if (on === ours) return heardOurs(message)
    const service = serviceOfNews(message)
    if (service === undefined) wake(message)
    else for (const listener of newsListeners) listener(service)
  }
  const heardOurs = (message: string) => {
    const handed = handedOver(message)
    if (!handed) return echo.heard()
    // Of nobody here now: its session has ended, and others look for what it had; or it lapsed, and looks when it is revived.
    for (const { session, onHanded } of consumers) if (session === handed.session) return onHanded?.(handed.job)
  }
  const isUp = () => {
    echo.repeat()
    for (const { onUp, onWake } of consumers) {
      onUp?.()
      onWake()
    }
    for (const listener of newsListeners) listener(undefined)
  }

  // On our own connection even when the caller has a transaction: a queue's row must not be locked by strangers. The
  // embedded database has only one connection, and the caller is on it: there the row comes and goes with the caller's
  // transaction, and is made again next time.
  const makeKnown = async (jobs: readonly NewJob[], tx: ForeignClient | undefined) => {
    const unknown = [...new Set(jobs.map(job => job.queue))].filter(queue => !knownQueues.has(queue))
    if (tx && db.kind === 'embedded') return ensureQueues(db.within(tx), unknown)
    await ensureQueues(db, unknown)
    for (const queue of unknown) knownQueues.add(queue)
  }

  // All or none: one lane is one statement; several need a transaction around them.
  const enqueueLanes = async (lanes: readonly NewJob[][], tx: ForeignClient | undefined) => {
    const on = async (queryable: Queryable) => {
      const results: Enqueued[] = []
      for (const lane of lanes) results.push(...(await enqueue(queryable, lane, channel)))
      return results
    }
    const [only] = lanes
    if (tx) return on(db.within(tx))
    const oneStatement = only?.length === 1 || only?.every(job => job.uniqueKey === undefined)
    return only && lanes.length === 1 && oneStatement ? enqueue(db, only, channel) : db.transaction(on)
  }

  /** One job, in no transaction but its own. Undefined: it is no different from many. */
  const publishOne = (job: NewJob, channel: string): Promise<Enqueued[]> | undefined => {
    if (streaks.lasts(job) && canGoBehind(job)) return goBehind(job)
    return isHanding || !canBeHandedOver(job) ? undefined : offer(job, channel)
  }

  const goBehind = async (job: NewJob): Promise<Enqueued[]> => {
    try {
      await enqueueBehind(db, job)
    } finally {
      streaks.wasPut(job)
    }
    wake(job.queue)
    return asAsked(job)
  }

  /** To a worker that stands by, if there is one. */
  const offer = async (job: NewJob, channel: string): Promise<Enqueued[]> => {
    isHanding = true
    try {
      const taker = takers.of(job)
      const went = taker && (await handOver(db, job, taker)) ? 'to a worker' : await enqueueOne(db, job, channel)
      streaks.asked(job, went === 'behind others')
      if (went === 'to a worker') takers.handed(job)
      else {
        takers.forget(job)
        wake(job.queue)
      }
    } finally {
      isHanding = false
    }
    return asAsked(job)
  }

  const forgetTakers = (lanes: readonly NewJob[][]) => {
    for (const [first] of lanes) if (first) takers.forget(first)
  }

  const publishAll = async (jobs: readonly NewJob[], tx: ForeignClient | undefined): Promise<Enqueued[]> => {
    const lanes = byLane(jobs)
    // What comes after these is not handed over past them: not to who is known now, nor to who is told of before they are seen in line.
    forgetTakers(lanes)
    const results = await enqueueLanes(lanes, tx).finally(() => forgetTakers(lanes))
    if (!tx) for (const queue of new Set(jobs.map(job => job.queue))) wake(queue)
    return results
  }

  const publish = (jobs: readonly NewJob[], tx: ForeignClient | undefined): Promise<Enqueued[]> => {
    const [only] = jobs
    const isAlone = only && jobs.length === 1 && !tx && channel !== null
    return (isAlone && publishOne(only, channel)) || publishAll(jobs, tx)
  }

  return {
    capabilities: { transactional: true, wakes: channel !== null, settlesInOrder: db.line !== undefined },
    channel,
    wake,
    onNews(listener) {
      newsListeners.add(listener)
      return () => newsListeners.delete(listener)
    },
    publish(jobs: readonly NewJob[], tx?: ForeignClient): Promise<Enqueued[]> {
      if (jobs.every(job => knownQueues.has(job.queue))) return publish(jobs, tx)
      return makeKnown(jobs, tx).then(() => publish(jobs, tx))
    },
    consume(options): Consumer {
      consumers.add(options)
      if (channel !== null)
        subscription ??= db.listen({ open: channel, secret: ours }, { onMessage: heard, onUp: isUp })
      const { session, lanes } = options
      const line = new Line(clock)
      return {
        fetch: (demand, limit) => line.claim(demand, lanes => claim(claims, session, lanes, limit)),
        held: () => heldBy(db, session),
        async standBy(some) {
          if (some.length > 0 && !(subscription && (await echo.comes()))) return false
          await standBy(db, session, ours, some)
          return true
        },
        stand: ms => stand(db, session, lanes, ms),
        close: async () => void consumers.delete(options),
      }
    },
    readPayloads: (jobs, onRead) => readPayloads(payloads, jobs, onRead),
    async settle(batch, by) {
      const refused = await settle(ends[by.lane] ?? db, batch, settlingShard(by.session, by.lane))
      // A note for people: failing to write it must not look like failing to settle.
      if (refused.length > 0) await recordStale(db, refused).catch(() => {})
      return refused
    },
    depth: queue => waitingIn(db, queue),
    async close() {
      consumers.clear()
      takers.close()
      await streaks.end()
      await subscription?.close()
    },
  }
}

const asAsked = ({ id }: NewJob): Enqueued[] => [{ id, deduplicated: false }]

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
