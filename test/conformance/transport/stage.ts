// A test's own corner of the transport under test: a queue nobody else uses, short ways to publish and to work.
import { expect } from 'vitest'
import { newJobId, type SessionId } from '../../../src/domain/ids.js'
import type { ClaimedJob, Enqueued, NewJob } from '../../../src/domain/job.js'
import type { Settlement } from '../../../src/domain/settlement.js'
import type { Lane, LaneDemand, Transport } from '../../../src/transport/transport.js'
import type { TransportHarness } from './harness.js'

export interface Worker {
  readonly session: SessionId
  /** Up to `limit` jobs of all its lanes, or of the `demand` that is named. */
  fetch(limit?: number, demand?: readonly LaneDemand[]): Promise<ClaimedJob[]>
  /** The one job there is for it: fails when there is none. */
  take(): Promise<ClaimedJob>
  /** Returns what was refused. */
  settle(...batch: Settlement[]): Promise<Settlement[]>
}

export interface WorkerOptions {
  readonly lanes?: readonly Lane[]
  readonly onWake?: () => void
  readonly transport?: Transport
}

export interface Stage extends TransportHarness {
  /** This test's queue. */
  readonly queue: string
  job(change?: Partial<NewJob>): NewJob
  publish(...jobs: NewJob[]): Promise<Enqueued[]>
  worker(options?: WorkerOptions): Promise<Worker>
  /** Where the jobs are, in the order asked. */
  states(...jobs: Pick<NewJob, 'id'>[]): Promise<(string | undefined)[]>
}

/** For a worker that no test wakes: it takes only when it is told to. */
export const nobodyListens = () => {}

/** The job name that every test uses unless it is about names. */
export const NAME = 'task'
const MANY = 1_000

export const ids = (jobs: readonly Pick<NewJob, 'id'>[]): string[] => jobs.map(job => job.id)

let stages = 0

export function stageOn(harness: TransportHarness): Stage {
  const queue = `queue-${++stages}`
  return {
    ...harness,
    queue,
    job: change => ({ id: newJobId(), queue, name: NAME, priority: 5, payloadText: '{}', ...change }),
    publish: (...jobs) => harness.transport.publish(jobs),
    worker: async options => workerOn(harness, queue, options),
    states: (...jobs) => Promise.all(jobs.map(async ({ id }) => (await harness.state(id))?.state)),
  }
}

async function workerOn(harness: TransportHarness, queue: string, options: WorkerOptions = {}): Promise<Worker> {
  const { lanes = [{ queue, name: NAME }], onWake = nobodyListens, transport = harness.transport } = options
  const session = await harness.openSession()
  const consumer = transport.consume({ session, lanes, onWake })
  const everyLane = lanes.map(lane => ({ ...lane, limit: MANY }))
  /** With all they carry, however that comes. */
  const fetch = async (limit = MANY, demand: readonly LaneDemand[] = everyLane) => {
    const jobs = await consumer.fetch(demand, limit)
    const without = jobs.filter(({ apart }) => apart)
    const came: ClaimedJob[] = []
    if (without.length > 0) await transport.readPayloads?.(without, job => came.push(job))
    expect(new Set(came)).toEqual(new Set(without))
    return jobs
  }
  return {
    session,
    fetch,
    async take() {
      const [job] = await fetch(1)
      if (!job) throw new Error(`There is no job in ${queue}`)
      return job
    },
    settle: (...batch) => transport.settle(batch, { session, lane: 0 }),
  }
}
