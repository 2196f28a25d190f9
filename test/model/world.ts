// The real thing beside the model: a fresh ledger, the Postgres transport on it, and two workers.
import type { SessionId } from '../../src/domain/ids.js'
import { effectivePolicy } from '../../src/policy/effective.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { type PostgresTransport, postgresTransport } from '../../src/transport/transports/postgres.js'
import { type DatabaseKind, type FreshDatabase, freshDatabase } from '../support/databases.js'
import { listening } from '../support/listening.js'
import { aSession } from '../support/story.js'

const START = '2030-01-01T00:00:00.000Z'
const YEAR_MS = 365 * 86_400_000

export const QUEUES = ['mail', 'images'] as const
export const NAME = 'task'
export const POLICY = effectivePolicy({ attempts: 3, backoff: { type: 'exponential', initialMs: 1_000, factor: 2 } })

export interface World extends FreshDatabase {
  readonly transport: PostgresTransport
  readonly random: () => number
  /** The sessions of the two workers; one that dies is followed by a new one. */
  readonly workers: [SessionId, SessionId]
  newSession(): Promise<SessionId>
  /** Where somebody listens to what is handed over; nobody can on an embedded database. */
  readonly channel: string | undefined
}

let worlds = 0

export async function openWorld(kind: DatabaseKind, seed: number): Promise<World> {
  const fresh = await freshDatabase(kind, { now: START })
  const newSession = () => aSession(fresh.db, YEAR_MS)
  worlds += 1
  const channel = fresh.db.kind === 'server' ? `world ${worlds} of ${process.pid}` : undefined
  if (channel !== undefined) await listening(fresh.another(), channel)
  return {
    ...fresh,
    transport: postgresTransport(fresh.db),
    random: seededRandom(seed),
    workers: [await newSession(), await newSession()],
    newSession,
    channel,
  }
}

export const startedAt = Date.parse(START)
