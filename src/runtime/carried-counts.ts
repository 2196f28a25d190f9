// Counts what the ledger does not see of broker queues, and tells it about once a second: successes, which leave no row,
// and what waits in the broker and in the hands of this worker.
import type { SessionId } from '../domain/ids.js'
import { type CarriedCount, countCarried, forgetCarried } from '../ledger/carried-count.js'
import type { Broker } from '../transport/broker.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'
import { SuccessCount } from './success-count.js'

export interface CarriedCountsOptions {
  readonly brokers: ReadonlyMap<string, Broker>
  readonly session: () => SessionId | undefined
  readonly inHands: (queue: string) => { readonly waiting: number; readonly active: number }
  readonly onError: (error: unknown) => void
}

const EVERY_MS = 1_000
/** What did not change is said again so often: a count that is not renewed is removed. */
const RENEW_EVERY = 10

export class CarriedCounts {
  readonly #runtime: Runtime
  readonly #options: CarriedCountsOptions
  readonly #successes: SuccessCount
  readonly #loop: Loop
  #told = ''
  #steps = 0

  constructor(runtime: Runtime, options: CarriedCountsOptions) {
    this.#runtime = runtime
    this.#options = options
    this.#successes = new SuccessCount(runtime.db)
    this.#loop = loop({ ...runtime, step: () => this.#step(), onError: options.onError })
  }

  start(): void {
    this.#loop.start()
  }

  completed(queue: string): void {
    this.#successes.add(queue)
  }

  /** Tells the last of it. */
  async stop(): Promise<void> {
    await this.#loop.stop()
    const session = this.#options.session()
    if (session === undefined) return
    await this.#successes.tell(session)
    await forgetCarried(this.#runtime.db, session)
  }

  async #step(): Promise<number> {
    const session = this.#options.session()
    if (session === undefined) return EVERY_MS
    await this.#successes.tell(session)
    const counts = await this.#counts(session)
    const told = JSON.stringify(counts)
    this.#steps += 1
    if (told !== this.#told || this.#steps % RENEW_EVERY === 0) await countCarried(this.#runtime.db, counts)
    this.#told = told
    return EVERY_MS
  }

  async #counts(session: SessionId): Promise<CarriedCount[]> {
    const counts: CarriedCount[] = []
    for (const [queue, broker] of this.#options.brokers) {
      counts.push({ queue, source: session, ...this.#options.inHands(queue) })
      if (!broker.connected) continue
      counts.push({ queue, source: broker.name, waiting: await broker.depth(queue), active: 0 })
    }
    return counts
  }
}
