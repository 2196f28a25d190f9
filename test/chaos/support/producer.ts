// Whoever enqueues in a chaos test: a Redrive in the test's own process, which keeps account of what was acknowledged.
import { afterEach } from 'vitest'
import { openRedrive, type Redrive } from '../../../src/index.js'
import type { Fleet } from './fleet.js'
import { type Carrying, carriedBy, defineJobs, type Payloads } from './jobs.js'

const jobs = defineJobs()
const open = new Set<Redrive>()

afterEach(async () => {
  await Promise.all([...open].map(redrive => redrive.close()))
  open.clear()
})

export class Producer {
  readonly acknowledged = new Set<string>()
  /** How each of them has to end, where its payload says so. */
  readonly expected = new Map<string, string>()
  /** Jobs in enqueues that failed: whether they are there, nobody knows. */
  doubtful = 0
  readonly #redrive: Redrive

  private constructor(redrive: Redrive) {
    this.#redrive = redrive
    open.add(redrive)
  }

  /** Makes the schema, too. */
  static async open(database: string, carrying: Carrying = {}): Promise<Producer> {
    return new Producer(await openRedrive({ database, env: { LOG_LEVEL: 'silent' }, ...carriedBy(carrying) }))
  }

  async enqueue<Name extends keyof Payloads>(name: Name, ...payloads: Payloads[Name][]): Promise<string[]> {
    const job = jobs[name] as Parameters<Redrive['enqueue']>[0]
    try {
      const enqueued = await this.#redrive.enqueueMany(
        job,
        payloads.map(payload => ({ payload })),
      )
      const ids = enqueued.map(({ id }) => id)
      for (const [index, id] of ids.entries()) {
        this.acknowledged.add(id)
        this.expected.set(id, expectedEnd(payloads[index]))
      }
      return ids
    } catch (error) {
      this.doubtful += payloads.length
      throw error
    }
  }

  /**
   * Keeps the fleet busy until told to stop: whenever few jobs are left, more come. An enqueue that fails is not
   * repeated. Resolves when the last enqueue has returned.
   */
  feed(fleet: Fleet, batch: () => Payloads['work'][], { least = 200 } = {}): { stop(): Promise<void> } {
    let stopped = false
    const feeding = (async () => {
      while (!stopped) {
        await this.enqueue('work', ...batch()).catch(() => {})
        await fleet.until(
          'the fleet needs more work',
          () => stopped || this.acknowledged.size - fleet.ended.size < least,
        )
      }
    })()
    return {
      stop: async () => {
        stopped = true
        await feeding
      },
    }
  }
}

function expectedEnd(payload: object | undefined): string {
  const end = payload && 'end' in payload ? payload.end : undefined
  if (end === 'die') return 'dead'
  return end === 'cancel' ? 'cancelled' : 'completed'
}
