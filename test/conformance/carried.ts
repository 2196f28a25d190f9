// A broker with the ledger behind it, as the suite wants it: the hands of a worker on the broker, and what is in the ledger
// after that. Workers of the suite ask for so many and get so many, so a broker's consumer is let go only while its worker
// fetches: what a real worker would hold ready would otherwise be missing elsewhere.
import { vi } from 'vitest'
import { type Clock, systemClock, systemRandom } from '../../src/domain/clock.js'
import type { Announce, Events } from '../../src/domain/event.js'
import { isCarriedLease, type JobId, type Lease, type SessionId } from '../../src/domain/ids.js'
import type { ClaimedJob, NewJob } from '../../src/domain/job.js'
import type { Settlement } from '../../src/domain/settlement.js'
import { orphans } from '../../src/ledger/claim.js'
import type { Database } from '../../src/ledger/database.js'
import { findJob } from '../../src/ledger/job.js'
import { promote } from '../../src/ledger/promote.js'
import { pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { endSession, lapseSessions, openSession, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { Services } from '../../src/runtime/breaker-sync.js'
import { defineJob } from '../../src/runtime/definition.js'
import { type Hands, handsOn } from '../../src/runtime/hands.js'
import { Policies } from '../../src/runtime/policies.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import type { Broker, BrokerChoice, BrokerConsumer } from '../../src/transport/broker.js'
import { type BrokerChoices, Carriers } from '../../src/transport/carriers.js'
import type { Consumer, Lane, Transport } from '../../src/transport/transport.js'
import { carriedTransport } from '../../src/transport/transports/carried.js'
import { type PostgresTransport, postgresTransport } from '../../src/transport/transports/postgres.js'
import { freshDatabase } from '../support/databases.js'
import { silent } from '../support/runtime.js'
import { lost } from '../support/settlements.js'
import { until } from '../support/until.js'
import { serverTransaction } from './postgres.js'
import type { TransportHarness } from './transport/harness.js'
import { nobodyListens } from './transport/stage.js'

const DAY_MS = 86_400_000
const BATCH = 1_000
const WORKER = { worker: 'w', host: 'h', pid: 1, version: null, queues: [], concurrency: 1 } as const
const LONG_MS = 60_000
// A broker that writes everything to disk is slow on a busy machine.
vi.setConfig({ testTimeout: 120_000 })

/** Why a broker cannot tell some of the stories. */
export const BROKER_SKIPS = {
  'several lanes are one line':
    'each queue of a broker is a line of its own: who came first in one of two queues is not known',
} as const

export interface BrokerUnderTest {
  /** A fresh choice for each "process"; all lead to the same queues. */
  choose(): Promise<BrokerChoice>
  /** This queue will be used: clean it up at the end. */
  uses(queue: string): void
}

/** Twenty times as fast as ours: nobody has to wait for the grace of those that come again. */
const fastClock: Clock = {
  ...systemClock,
  monotonic: () => systemClock.monotonic() * 20,
  timer: (delayMs, fire, options) => systemClock.timer(delayMs / 20, fire, options),
}

export const carriedHarness = (broker: () => Promise<BrokerUnderTest>) => async (): Promise<TransportHarness> => {
  const fresh = await freshDatabase('server', { now: '2030-01-01T00:00:00.000Z' })
  const { db, clock } = fresh
  const under = await broker()
  const hands = new Map<SessionId, HandsOfTest[]>()
  const books = new Books()
  const paused = new Set<string>()
  const processes: Process[] = []
  /** What dead workers had in their hands. */
  const left: ClaimedJob[] = []

  const start = async (on: Database) => {
    const process = new Process(on, await under.choose(), { hands, books, paused, uses: queue => under.uses(queue) })
    processes.push(process)
    return process
  }
  const first = await start(db)

  return {
    transport: first.transport,
    another: async ({ deaf = false } = {}) => (await start(fresh.another(deaf ? { listen: false } : {}))).transport,
    openSession: () => openSession(db, { ...WORKER, leaseMs: DAY_MS }),
    async endSession(session) {
      await endSession(db, session)
      for (const hand of hands.get(session) ?? []) await hand.close()
    },
    async crash(session) {
      for (const hand of hands.get(session) ?? []) left.push(...(await hand.die()))
      await renewSession(db, session, -1)
      await lapseSessions(db)
    },
    async rescue() {
      const session = await openSession(db, { ...WORKER, leaseMs: DAY_MS })
      const batch = (await orphans(db, await sessionsToSearch(db), BATCH)).map(orphan => lost(orphan))
      await first.transport.settle(batch, { session, lane: 0 })
      await first.takeWhatCameAgain(session, left.splice(0))
    },
    advance: async ms => clock.advance(ms),
    now: () => new Date(clock.now ?? ''),
    promote: async () => void (await promote(db, BATCH, first.ledger.channel)),
    async pause(queue) {
      await pauseQueue(db, queue, 'a test')
      paused.add(queue)
    },
    async resume(queue) {
      paused.delete(queue)
      await resumeQueue(db, queue, first.ledger.channel)
    },
    state: async id => (await findJob(db, id)) ?? books.seen(id),
    transaction: work => serverTransaction(fresh, work),
    async close() {
      for (const process of processes) await process.close()
      await fresh.close()
    },
  }
}

type Known = 'waiting' | 'active' | 'completed'

/** What is known of jobs that never came into the ledger. */
class Books {
  readonly #jobs = new Map<JobId, { state: Known; readonly lane: Lane }>()

  publish({ id, queue, name }: NewJob): void {
    this.#jobs.set(id, { state: 'waiting', lane: { queue, name } })
  }

  write(id: JobId, state: Known): void {
    const job = this.#jobs.get(id)
    if (job) job.state = state
  }

  /** It came again, and waits in the ledger now. */
  strike(id: JobId): void {
    this.#jobs.delete(id)
  }

  /** How many of these lanes nobody has taken. */
  waiting(lanes: readonly Lane[]): number {
    return [...this.#jobs.values()].filter(({ state, lane }) => state === 'waiting' && lanes.some(isOf(lane))).length
  }

  seen(id: JobId) {
    const state = this.#jobs.get(id)?.state
    const attempt = state === 'waiting' ? 0 : 1
    return state && { state, attempt, snoozes: 0, holds: 0, interruptions: 0, lost: 0 }
  }
}

interface Shared {
  readonly hands: Map<SessionId, HandsOfTest[]>
  readonly books: Books
  readonly paused: ReadonlySet<string>
  readonly uses: (queue: string) => void
}

/** One process: a ledger, a connection to the broker, and workers by hand. */
class Process {
  readonly ledger: PostgresTransport
  readonly transport: Transport
  readonly #shared: Shared
  readonly #carriers: Carriers
  readonly #runtime: Runtime
  readonly #db: Database
  readonly #owners = new Map<Lease, HandsOfTest>()
  readonly #queues = new Set<string>()
  readonly #name: BrokerChoice['name']

  constructor(db: Database, choice: BrokerChoice, shared: Shared) {
    this.#db = db
    this.#shared = shared
    this.#name = choice.name
    this.ledger = postgresTransport(db)
    const choices: BrokerChoices = { [choice.name]: choice }
    const context = { env: {}, clock: systemClock, random: systemRandom, onError: () => {} }
    this.#carriers = new Carriers(choices, {}, context)
    const carried = carriedTransport(this.ledger, this.#carriers, systemClock)
    const announce: Announce = (name, event, about) => {
      if (name === 'job.rescued')
        shared.books.strike((event(about as NonNullable<typeof about>) as Events['job.rescued']).job.id)
    }
    const parts = { db, transport: carried, clock: fastClock, random: systemRandom, announce }
    this.#runtime = {
      ...parts,
      services: new Services(parts),
      policies: new Policies({}),
      logFor: () => silent as never,
      onDeferred: () => {},
    }
    this.transport = {
      ...carried,
      publish: async (jobs, tx) => {
        for (const { queue } of jobs) this.#route(queue)
        const published = await carried.publish(jobs, tx)
        const fresh = jobs.filter((_, index) => !published[index]?.deduplicated)
        if (!tx) for (const job of fresh) await this.#note(job)
        return published
      },
      consume: options => this.#consume(options),
      settle: (batch, by) => this.#settle(batch, by),
    }
  }

  async #note(job: NewJob): Promise<void> {
    if ((await findJob(this.#db, job.id)) === undefined) this.#shared.books.publish(job)
  }

  #route(queue: string): void {
    this.#carriers.route(queue, this.#name)
    this.#queues.add(queue)
    this.#shared.uses(queue)
  }

  #consume({ session, lanes, onWake }: Parameters<Transport['consume']>[0]): Consumer {
    for (const { queue } of lanes) this.#route(queue)
    const ledger = this.ledger.consume({ session, lanes, onWake })
    const hands = new HandsOfTest(this.#runtime, this.#carriers, { session, lanes, onWake })
    this.#shared.hands.set(session, [...(this.#shared.hands.get(session) ?? []), hands])
    return {
      fetch: async (demand, limit) => {
        const wanted = demand.filter(({ queue }) => !this.#shared.paused.has(queue))
        const others = () => [...this.#shared.hands.values()].flat().filter(other => other !== hands)
        const elsewhere = () => others().reduce((sum, other) => sum + other.waiting(wanted), 0)
        const arrived = await hands.fetch(wanted, limit, {
          expected: () => this.#shared.books.waiting(wanted) - elsewhere(),
          onTaken: ({ id, lease }) => {
            this.#owners.set(lease, hands)
            this.#shared.books.write(id, 'active')
          },
        })
        const left = wanted.map(lane => {
          return { ...lane, limit: lane.limit - arrived.filter(isOf(lane)).length }
        })
        const more = left.filter(lane => lane.limit > 0)
        return [...arrived, ...(await ledger.fetch(more, limit - arrived.length))]
      },
      held: () => ledger.held(),
      async close() {
        await hands.close()
        await ledger.close()
      },
    }
  }

  async #settle(batch: readonly Settlement[], by: { session: SessionId; lane: number }): Promise<Settlement[]> {
    const ours = batch.filter(({ lease }) => !isCarriedLease(lease))
    const refused = new Set(ours.length > 0 ? await this.ledger.settle(ours, by) : [])
    for (const settlement of batch) {
      if (!isCarriedLease(settlement.lease)) continue
      const hands = this.#owners.get(settlement.lease)
      if (!hands || !(await hands.settle(settlement))) refused.add(settlement)
      else if (settlement.decision.type === 'complete') this.#shared.books.write(settlement.id, 'completed')
    }
    return batch.filter(settlement => refused.has(settlement))
  }

  /** A worker of every queue takes what the dead left behind: each is lost, and waits in the ledger then. */
  async takeWhatCameAgain(session: SessionId, left: readonly ClaimedJob[]): Promise<void> {
    if (left.length === 0) return
    const lanes = [...new Set(left.map(({ queue }) => queue))].map(queue => ({ queue, name: 'nobody runs this' }))
    const hands = new HandsOfTest(this.#runtime, this.#carriers, { session, lanes, onWake: nobodyListens })
    await hands.takeAll(async () => {
      const found = await Promise.all(left.map(({ id }) => findJob(this.#db, id)))
      return found.every(job => job !== undefined)
    })
    await hands.close()
  }

  async close(): Promise<void> {
    for (const hands of [...this.#shared.hands.values()].flat()) await hands.close()
    await this.#runtime.services.stop()
    await this.ledger.close()
    await this.#carriers.close()
  }
}

const toLane = (queue: string): Lane => ({ queue, name: '' })

const isOf =
  ({ queue, name }: Lane) =>
  (job: Lane): boolean =>
    job.queue === queue && job.name === name

interface FetchOptions {
  /** How many there must be now that nobody took, by the books, here and in the broker. */
  readonly expected: () => number
  /** At once: others who fetch must not wait for it. */
  readonly onTaken: (job: ClaimedJob) => void
}

/** A worker's hands, on a consumer that the test holds. */
class HandsOfTest {
  readonly #hands: Hands
  readonly #consumer: BrokerConsumer
  readonly #queues: readonly string[]
  readonly #taken = new Map<Lease, ClaimedJob>()
  #closed = false

  constructor(
    runtime: Runtime,
    carriers: Carriers,
    { session, lanes, onWake }: { session: SessionId; lanes: readonly Lane[]; onWake: () => void },
  ) {
    const queues = [...new Set(lanes.map(({ queue }) => queue))]
    const broker = carriers.of(queues[0] as string)?.broker as Broker
    const asleep = onWake === nobodyListens
    let real: BrokerConsumer | undefined
    const held: Broker = {
      name: broker.name,
      connected: true,
      publish: messages => broker.publish(messages),
      depth: queue => broker.depth(queue),
      close: async () => {},
      consume: options => {
        real = broker.consume({ ...options, prefetch: queues.length })
        if (asleep) for (const queue of queues) real.setPaused(queue, true)
        const consumer = real
        return {
          take: (queue, limit) => consumer.take(queue, limit),
          arrived: queue => consumer.arrived(queue),
          acknowledge: deliveries => consumer.acknowledge(deliveries),
          giveBack: deliveries => consumer.giveBack(deliveries),
          setPaused: () => {},
          close: () => consumer.close(),
        }
      },
    }
    const only = {
      of: () => ({ broker: held, whenDown: 'fail' }),
      addHands: (count: never) => carriers.addHands(count),
    }
    const definitions = lanes.map(({ queue, name }) => defineJob({ queue, name, handler: () => null }))
    this.#hands = handsOn(
      { ...runtime, carriers: only as unknown as Carriers },
      {
        worker: 'w',
        definitions,
        concurrency: 1,
        session: () => session,
        safe: () => false,
        free: () => 0,
        onWake,
        release: () => [],
        write: (settlement, done) => {
          this.#hands.settle([settlement]).then(
            refused => done(refused.length === 0, settlement),
            () => done(false, settlement),
          )
        },
        onError: () => {},
      },
    ) as Hands
    this.#consumer = real as unknown as BrokerConsumer
    this.#queues = queues
  }

  /** How many of these lanes' queues have arrived here and were not taken. */
  waiting(lanes: readonly Lane[]): number {
    if (this.#closed) return 0
    this.#hands.take([], 0)
    return [...new Set(lanes.map(({ queue }) => queue))].reduce(
      (sum, queue) => sum + this.#hands.inHandsOf(queue).waiting,
      0,
    )
  }

  async fetch(
    demand: Parameters<Hands['take']>[0],
    limit: number,
    { expected, onTaken }: FetchOptions,
  ): Promise<ClaimedJob[]> {
    if (this.#closed || demand.length === 0 || limit < 1) return []
    const queues = [...new Set(demand.map(({ queue }) => queue))]
    const taken: ClaimedJob[] = []
    for (;;) {
      const left = demand.map(lane => ({ ...lane, limit: lane.limit - taken.filter(isOf(lane)).length }))
      const next = this.#hands.take(left, limit - taken.length)
      for (const job of next) {
        this.#taken.set(job.lease, job)
        onTaken(job)
      }
      taken.push(...next)
      if (taken.length === limit) return taken
      // What waits here for lanes that take no more must not be in the way of the others.
      const waiting = this.waiting(demand)
      const more = () => Math.min(limit - taken.length + waiting, expected())
      if (more() <= waiting || (await this.#bring(queues, more)) === waiting) return taken
    }
  }

  /** Waits until so many are here, or all there are. Returns how many are. */
  async #bring(queues: readonly string[], wanted: () => number): Promise<number> {
    this.#consumer.setPrefetch?.(wanted() * this.#queues.length)
    for (const queue of queues) this.#consumer.setPaused(queue, false)
    await until('all that waits has arrived', () => this.waiting(queues.map(toLane)) >= wanted(), LONG_MS)
    for (const queue of queues) this.#consumer.setPaused(queue, true)
    await this.#consumer.acknowledge([])
    return this.waiting(queues.map(toLane))
  }

  /** Takes everything there is: what came again goes into the ledger. */
  async takeAll(isDone: () => Promise<boolean>): Promise<void> {
    this.#consumer.setPrefetch?.(BATCH * this.#queues.length)
    for (const queue of this.#queues) this.#consumer.setPaused(queue, false)
    const look = () => {
      this.waiting(this.#queues.map(toLane))
      return isDone()
    }
    await until('what came again is in the ledger', look, LONG_MS)
  }

  settle(settlement: Settlement): Promise<boolean> {
    this.#taken.delete(settlement.lease)
    if (settlement.decision.type === 'complete') {
      return new Promise(resolve => this.#hands.complete(settlement, resolve))
    }
    return this.#hands.settle([settlement]).then(refused => refused.length === 0)
  }

  /** Its connection is gone, and nobody says a word. */
  async die(): Promise<ClaimedJob[]> {
    this.#closed = true
    await this.#consumer.close()
    return [...this.#taken.values()]
  }

  async close(): Promise<void> {
    if (this.#closed) return
    this.#closed = true
    await this.#hands.close(1_000)
  }
}
