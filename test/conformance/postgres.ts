// The Postgres transport on a fresh ledger of any kind, as the suite wants it. Sessions last a day by the suite's clock;
// a crash is a lease that ran out, and rescue does what the recovery worker does.
import pg from 'pg'
import type { SessionId } from '../../src/domain/ids.js'
import { orphans } from '../../src/ledger/claim.js'
import type { Database, ForeignClient, Param } from '../../src/ledger/database.js'
import { findJob } from '../../src/ledger/job.js'
import { promote } from '../../src/ledger/promote.js'
import { pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { endSession, lapseSessions, openSession, renewSession, sessionsToSearch } from '../../src/ledger/session.js'
import { type PostgresTransport, postgresTransport } from '../../src/transport/transports/postgres.js'
import { type DatabaseKind, type FreshDatabase, freshDatabase } from '../support/databases.js'
import { lost } from '../support/settlements.js'
import type { TransportHarness } from './transport/harness.js'

const DAY_MS = 86_400_000
const BATCH = 1_000

/** Why the embedded database cannot tell some of the stories. */
export const EMBEDDED_SKIPS = {
  'a job published by another process wakes the workers of this one':
    'the embedded database is open in one process only: there is no other to publish',
  'a job that becomes due wakes':
    'without LISTEN there is no sign of being up to await; the promoter of the one process wakes directly',
  'before the commit nobody sees the job':
    'the embedded database has one connection: whoever looks waits until the transaction has ended',
  'a commit wakes the workers': 'without LISTEN nobody hears a commit that is not ours; the worker polls',
} as const

export const postgresHarness = (kind: DatabaseKind) => async (): Promise<TransportHarness> => {
  const fresh = await freshDatabase(kind, { now: '2030-01-01T00:00:00.000Z' })
  const { db, clock } = fresh
  const transport = postgresTransport(db)
  const others: PostgresTransport[] = []
  const wakeAll = (queue: string) => {
    for (const one of [transport, ...others]) one.wake(queue)
  }
  return {
    transport,
    async another({ deaf = false } = {}) {
      const other = postgresTransport(fresh.another(deaf ? { listen: false } : {}))
      others.push(other)
      return other
    },
    openSession: () => openSession(db, { ...WORKER, leaseMs: DAY_MS }),
    endSession: session => endSession(db, session),
    async crash(session: SessionId) {
      await renewSession(db, session, -1)
      await lapseSessions(db)
    },
    async rescue() {
      const session = await openSession(db, { ...WORKER, leaseMs: DAY_MS })
      const batch = (await orphans(db, await sessionsToSearch(db), BATCH)).map(orphan => lost(orphan))
      await transport.settle(batch, { session, lane: 0 })
    },
    advance: async ms => clock.advance(ms),
    now: () => new Date(clock.now ?? ''),
    async promote() {
      const { queues } = await promote(db, BATCH, transport.channel)
      if (db.kind === 'embedded') queues.forEach(wakeAll)
    },
    pause: queue => pauseQueue(db, queue, 'a test'),
    async resume(queue) {
      await resumeQueue(db, queue, transport.channel)
      if (db.kind === 'embedded') wakeAll(queue)
    },
    state: id => findJob(db, id),
    transaction:
      fresh.url === undefined ? work => embeddedTransaction(db, work) : work => serverTransaction(fresh, work),
    async close() {
      await Promise.all([transport, ...others].map(one => one.close()))
      await fresh.close()
    },
  }
}

const WORKER = { worker: 'w', host: 'h', pid: 1, version: null, queues: [], concurrency: 1 } as const

function embeddedTransaction<T>(db: Database, work: (tx: ForeignClient) => Promise<T>): Promise<T> {
  return db.transaction(tx =>
    work({ query: async (text, params) => ({ rows: await tx.query({ text }, params as Param[]) }) }),
  )
}

/** On a connection that is the caller's alone, as an application's would be. */
export async function serverTransaction<T>(
  { url }: FreshDatabase,
  work: (tx: ForeignClient) => Promise<T>,
): Promise<T> {
  const client = new pg.Client({ connectionString: url ?? '' })
  await client.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client as ForeignClient)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    await client.end()
  }
}
