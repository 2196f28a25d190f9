// Successes of jobs that brokers carried, until the ledger has counted them. Adding is not like writing an end, which is fenced:
// what is added twice counts twice. So when the answer to a commit is lost, the ledger is first asked what became of that
// transaction, and only what did not come to pass is told again.
import type { SessionId } from '../domain/ids.js'
import { addCompleted } from '../ledger/carried-count.js'
import type { Database } from '../ledger/database.js'
import { fateOf } from '../ledger/transaction-fate.js'

/** How many, by queue. */
type Counts = ReadonlyMap<string, number>

export class SuccessCount {
  readonly #db: Database
  #untold = new Map<string, number>()
  #unanswered: { readonly transactionId: string; readonly counts: Counts } | undefined

  constructor(db: Database) {
    this.#db = db
  }

  add(queue: string, count = 1): void {
    this.#untold.set(queue, (this.#untold.get(queue) ?? 0) + count)
  }

  /** Tells the ledger what it does not know yet. What could not be told is told the next time. */
  async tell(session: SessionId): Promise<void> {
    // Until that one has ended it has a lock on the very rows that the next would change.
    if (!(await this.#isAnswered())) return
    const counts = this.#untold
    if (counts.size === 0) return
    this.#untold = new Map()
    let written: string | undefined
    try {
      await addCompleted(this.#db, session, counts, transactionId => {
        written = transactionId
      })
    } catch (error) {
      // INVARIANT: without its number, nobody asked for its commit.
      if (written === undefined) this.#tellAgain(counts)
      else this.#unanswered = { transactionId: written, counts }
      throw error
    }
  }

  async #isAnswered(): Promise<boolean> {
    if (!this.#unanswered) return true
    const { transactionId, counts } = this.#unanswered
    const fate = await fateOf(this.#db, transactionId)
    if (fate === 'pending') return false
    this.#unanswered = undefined
    if (fate === 'aborted') this.#tellAgain(counts)
    return true
  }

  #tellAgain(counts: Counts): void {
    for (const [queue, count] of counts) this.add(queue, count)
  }
}
