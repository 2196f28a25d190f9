// The ledger's own transport with brokers beside it: what is due now and belongs to a queue of a broker is published
// there; everything else goes into the ledger, and a job that is in the ledger stays there. Workers take from both.
import type { Clock } from '../../domain/clock.js'
import { isRedriveError } from '../../domain/errors.js'
import type { Enqueued, NewJob } from '../../domain/job.js'
import type { ForeignClient } from '../../ledger/database.js'
import type { Carrier, Carriers } from '../carriers.js'
import { toMessage } from '../envelope.js'
import type { PostgresTransport } from './postgres.js'

export function carriedTransport(ledger: PostgresTransport, carriers: Carriers, clock: Clock): PostgresTransport {
  const publishOn = async ({ broker, whenDown }: Carrier, jobs: readonly NewJob[]): Promise<Enqueued[]> => {
    if (whenDown === 'park' && !broker.connected) return ledger.publish(jobs)
    try {
      await broker.publish(jobs.map(job => toMessage(job, clock.now())))
    } catch (error) {
      // What the broker may have must not be put into the ledger as well: it would run twice.
      const surelyNot = isRedriveError(error, 'BROKER_UNAVAILABLE') && error.details.taken === 'none'
      if (whenDown === 'park' && surelyNot) return ledger.publish(jobs)
      throw error
    }
    return jobs.map(({ id }) => ({ id, deduplicated: false }))
  }

  return {
    ...ledger,
    async publish(jobs: readonly NewJob[], tx?: ForeignClient): Promise<Enqueued[]> {
      const [first] = jobs
      const carrier = first && carriers.of(first.queue)
      // All or none: a batch of which any part has to be in the ledger goes there whole.
      const carried = carrier && !tx && jobs.every(job => isDueNow(job) && carriers.of(job.queue) === carrier)
      return carried ? publishOn(carrier, jobs) : ledger.publish(jobs, tx)
    },
    depth: async queue => (await ledger.depth(queue)) + (await carriers.depth(queue)),
    async close() {
      await ledger.close()
      await carriers.close()
    },
  }
}

const isDueNow = ({ delayMs = 0, runAt, uniqueKey }: NewJob): boolean =>
  delayMs <= 0 && runAt === undefined && uniqueKey === undefined
