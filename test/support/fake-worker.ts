// A worker on a ledger that is only pretended, with time by hand: for what a real database would not do on demand,
// such as never to answer.
import type { ClaimedJob } from '../../src/domain/job.js'
import type { Database, Statement } from '../../src/ledger/database.js'
import { Services } from '../../src/runtime/breaker-sync.js'
import { defineJob, type Handler } from '../../src/runtime/definition.js'
import { Policies } from '../../src/runtime/policies.js'
import { Worker } from '../../src/runtime/worker.js'
import { createEmitter } from '../../src/telemetry/emitter.js'
import { jobLog } from '../../src/telemetry/log.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { PostgresTransport } from '../../src/transport/transports/postgres.js'
import { silent } from './runtime.js'

export interface Pretended {
  /** What a renewal of the session gives. */
  renew: () => Promise<unknown[]>
  /** What a fetch gives. */
  fetch: () => Promise<ClaimedJob[]>
  fetches: number
}

export const claimed = (change: Partial<ClaimedJob> = {}): ClaimedJob => ({
  id: '00000000-0000-7000-8000-000000000001' as ClaimedJob['id'],
  lease: '1' as ClaimedJob['lease'],
  queue: 'mail',
  name: 'send',
  priority: 5,
  payloadText: '{}',
  attempt: 1,
  snoozes: 0,
  holds: 0,
  interruptions: 0,
  lost: 0,
  redrives: 0,
  createdAt: 0,
  firstClaimedAt: 0,
  claimedAt: 0,
  waitingSince: 0,
  suspect: false,
  ...change,
})

export function pretendWorker(handler: Handler<unknown, unknown>, leaseMs = 15_000) {
  const clock = manualClock()
  const { announce, on } = createEmitter()
  const ledger: Pretended = { renew: async () => [{ cancelled: null }], fetch: async () => [], fetches: 0 }
  const db = {
    kind: 'embedded',
    schema: 'redrive',
    now: () => null,
    query: async ({ text }: Statement) => {
      if (text.includes('INSERT INTO redrive.session')) return [{ id: 1 }]
      return text.includes('UPDATE redrive.session') ? ledger.renew() : []
    },
  } as unknown as Database
  const transport = {
    capabilities: { transactional: true, wakes: false, settlesInOrder: false },
    channel: null,
    wake: () => {},
    consume: () => ({
      fetch: () => {
        ledger.fetches += 1
        return ledger.fetch()
      },
      held: async () => [],
      close: async () => {},
    }),
    settle: async () => [],
    close: async () => {},
  } as unknown as PostgresTransport
  const parts = { db, transport, clock, random: () => 0.5, announce }
  const worker = new Worker(
    {
      ...parts,
      services: new Services(parts),
      policies: new Policies({}),
      logFor: jobLog(silent),
      onDeferred: () => {},
    },
    [defineJob({ name: 'send', queue: 'mail', handler })],
    { name: 'w1', host: 'h', pid: 1, version: null, concurrency: 5, leaseMs, pollMs: 1_000 },
  )
  return { clock, on, ledger, worker }
}
