// Makes due jobs claimable, in every process that works: rows are taken with SKIP LOCKED, so many promoters share the
// work and none is needed in particular. Sleeps until the next job is due, at most a second.
import { promote } from '../ledger/promote.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'

const BATCH = 1_000
const LONGEST_WAIT_MS = 1_000
/** Where one is due after the other, those of so long are promoted together. */
const SHORTEST_WAIT_MS = 10

export function promoter(runtime: Runtime): Loop {
  const { clock, random, announce } = runtime
  return loop({
    clock,
    random,
    step: () => promoteDue(runtime),
    onError: error => announce('error', () => ({ where: 'promoting due jobs', error })),
  })
}

async function promoteDue({ db, transport }: Runtime): Promise<number> {
  const { promoted, queues, nextDueInMs } = await promote(db, BATCH, transport.channel)
  for (const queue of queues) transport.wake(queue)
  if (promoted === BATCH) return 0
  const waitMs = Math.min(nextDueInMs ?? LONGEST_WAIT_MS, LONGEST_WAIT_MS)
  return Math.max(promoted > 0 ? SHORTEST_WAIT_MS : 1, waitMs)
}

/** Promotes everything that is due now; returns how many. */
export async function promoteAll({ db, transport }: Runtime): Promise<number> {
  for (let total = 0; ; ) {
    const { promoted, queues } = await promote(db, BATCH, transport.channel)
    for (const queue of queues) transport.wake(queue)
    total += promoted
    if (promoted < BATCH) return total
  }
}
