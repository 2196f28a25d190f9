// One statement, on a connection of `pg` or on the next free one of a pool. Statements have their limit on the server; whoever is not
// answered long after that gives up, because the server, or the way to it, has fallen silent.
import type pg from 'pg'
import type { Clock, Timer } from '../../domain/clock.js'

interface Waiting {
  readonly since: number
  readonly giveUp: () => void
}

/**
 * One timer for all who wait. pg's own limit (`query_timeout`) sets one for each query, and what belongs to a query then outlives it: a tenth of what
 * single enqueues allocate stayed until the next full garbage collection (docs/decisions/0033).
 */
export class Patience {
  readonly #clock: Clock
  readonly #limitMs: number
  /** In the order in which they began to wait. */
  readonly #waiting = new Set<Waiting>()
  #timer: Timer | undefined

  constructor(clock: Clock, limitMs: number) {
    this.#clock = clock
    this.#limitMs = limitMs
  }

  /** Calls `giveUp` when the limit has passed, unless `end` is called before. */
  begin(giveUp: () => void): Waiting {
    const waiting = { since: this.#clock.monotonic(), giveUp }
    this.#waiting.add(waiting)
    this.#timer ??= this.#clock.timer(this.#limitMs, this.#look, { background: true })
    return waiting
  }

  end(waiting: Waiting): void {
    this.#waiting.delete(waiting)
  }

  readonly #look = (): void => {
    this.#timer = undefined
    const now = this.#clock.monotonic()
    for (const waiting of this.#waiting) {
      const leftMs = waiting.since + this.#limitMs - now
      if (leftMs > 0) {
        this.#timer = this.#clock.timer(leftMs, this.#look, { background: true })
        return
      }
      this.#waiting.delete(waiting)
      waiting.giveUp()
    }
  }
}

export const SILENT = 'The server did not answer'

/** A connection of a pool, lent to us. */
interface Lent {
  readonly client: pg.PoolClient
  /** Prepared statements that were asked there. */
  readonly knows: Set<string>
  /** When it was last answered. */
  keptAt: number
  readonly whenBroken: (error: Error) => void
}

/** One that claims, one that settles, one for everything else. */
const MOST_KEPT = 3

/**
 * Asks on connections of a pool. With `keeps`, a few stay at hand when they are answered: to give one back and to be lent it again is a tenth of what a
 * single enqueue costs on this side, and to plan a statement where it was never asked takes as long as a thousand jobs. It must then be the only one who
 * asks there, and be told when a connection is needed for longer. Of what nobody asks for a while it lets go, so that a process can end, and nobody is
 * asked who was cut off meanwhile.
 */
export class Asker {
  readonly #pool: Pick<pg.Pool, 'connect'> & { readonly waitingCount?: number }
  readonly #patience: Patience
  readonly #clock: Clock
  readonly #idleMs: number
  #keeps: boolean
  /** In the order in which they were answered. */
  readonly #kept: Lent[] = []
  #timer: Timer | undefined

  constructor(
    pool: Pick<pg.Pool, 'connect'>,
    { patience, clock, idleMs, keeps }: { patience: Patience; clock: Clock; idleMs: number; keeps: boolean },
  ) {
    this.#pool = pool
    this.#patience = patience
    this.#clock = clock
    this.#idleMs = idleMs
    this.#keeps = keeps
  }

  /** On a connection that is thrown away if the statement fails. */
  ask(query: pg.QueryConfig): Promise<pg.QueryResult> {
    return new Promise((resolve, reject) => {
      const kept = this.#takeKept(query.name)
      if (kept) return this.#askOn(kept, query, resolve, reject)
      this.#pool.connect((error, client) => {
        if (client) this.#askOn(this.#lent(client), query, resolve, reject)
        else reject(error)
      })
    })
  }

  /** Leaves the pool one more connection, for somebody who needs one for longer. */
  giveBack(): void {
    const kept = this.#kept.pop()
    if (kept) release(kept)
  }

  /** Keeps nothing any more. */
  close(): void {
    this.#keeps = false
    this.#timer?.cancel()
    while (this.#kept.length > 0) this.giveBack()
  }

  /** Rather one where this was asked before. */
  #takeKept(name: string | undefined): Lent | undefined {
    if (name === undefined || this.#kept.length < 2) return this.#kept.pop()
    const place = this.#kept.findIndex(({ knows }) => knows.has(name))
    return place < 0 ? this.#kept.pop() : this.#kept.splice(place, 1)[0]
  }

  #lent(client: pg.PoolClient): Lent {
    const lent: Lent = {
      client,
      knows: new Set(),
      keptAt: 0,
      // What is under way is told by its answer.
      whenBroken: error => {
        const place = this.#kept.indexOf(lent)
        if (place < 0) return
        this.#kept.splice(place, 1)
        release(lent, error)
      },
    }
    client.on('error', lent.whenBroken)
    return lent
  }

  #askOn(
    lent: Lent,
    query: pg.QueryConfig,
    resolve: (result: pg.QueryResult) => void,
    reject: (error: Error) => void,
  ): void {
    if (query.name !== undefined) lent.knows.add(query.name)
    let isOver = false
    const over = (error?: Error | null, result?: pg.QueryResult) => {
      if (isOver) return
      isOver = true
      this.#patience.end(waiting)
      if (error) {
        release(lent, error)
        reject(error)
      } else {
        this.#keepOrRelease(lent)
        resolve(result as pg.QueryResult)
      }
    }
    const waiting = this.#patience.begin(() => {
      over(new Error(SILENT))
      hangUp(lent.client)
    })
    void lent.client.query(query, over)
  }

  #keepOrRelease(lent: Lent): void {
    if (!this.#keeps || this.#kept.length === MOST_KEPT || this.#pool.waitingCount) {
      release(lent)
      return
    }
    lent.keptAt = this.#clock.monotonic()
    this.#kept.push(lent)
    this.#timer ??= this.#clock.timer(this.#idleMs, this.#letGo, { background: true })
  }

  readonly #letGo = (): void => {
    this.#timer = undefined
    const now = this.#clock.monotonic()
    for (let first = this.#kept[0]; first; first = this.#kept[0]) {
      const leftMs = first.keptAt + this.#idleMs - now
      if (leftMs > 0) {
        this.#timer = this.#clock.timer(leftMs, this.#letGo, { background: true })
        return
      }
      this.#kept.shift()
      release(first, true)
    }
  }
}

/** `end`: with an error, or true, nobody is lent it again. */
function release({ client, whenBroken }: Lent, end?: Error | boolean): void {
  client.off('error', whenBroken)
  client.release(end)
}

/** On this connection, which is of no use any more if it stays silent. */
export const askClient = (client: pg.PoolClient, query: pg.QueryConfig, patience: Patience) =>
  new Promise<pg.QueryResult>((resolve, reject) => {
    const waiting = patience.begin(() => {
      reject(new Error(SILENT))
      hangUp(client)
    })
    void client.query(query, (error: Error | null, result: pg.QueryResult) => {
      patience.end(waiting)
      if (error) reject(error)
      else resolve(result)
    })
  })

/** Without a goodbye: pg says it when all is answered, and nothing will be. */
const hangUp = (client: pg.PoolClient): void => {
  const { connection } = client as unknown as { connection?: { stream?: { destroy(): void } } }
  connection?.stream?.destroy()
}
