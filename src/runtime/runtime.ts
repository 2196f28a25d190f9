// What every moving part needs: the ledger, the transport, time, chance, and a way to tell.
import type { Clock, Random } from '../domain/clock.js'
import type { Announce } from '../domain/event.js'
import type { Job } from '../domain/job.js'
import type { Tracing } from '../domain/tracing.js'
import type { Database } from '../ledger/database.js'
import type { Carriers } from '../transport/carriers.js'
import type { PostgresTransport } from '../transport/transports/postgres.js'
import type { Services } from './breaker-sync.js'
import type { Log } from './definition.js'
import type { Policies } from './policies.js'

export interface Runtime {
  readonly db: Database
  readonly transport: PostgresTransport
  /** Brokers that carry queues; undefined where there are none. */
  readonly carriers?: Carriers | undefined
  readonly clock: Clock
  readonly random: Random
  readonly announce: Announce
  readonly policies: Policies
  readonly services: Services
  /** Called when a job will be due in so long, for whoever promotes. */
  readonly onDeferred: (delayMs: number) => void
  readonly logFor: (job: Job, worker?: string) => Log
  /** Undefined: no spans. */
  readonly tracing?: Tracing
}
