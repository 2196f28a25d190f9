// One statement, on a connection of `pg` or on the next free one of a pool. Statements have their limit on the server; whoever is not
// answered long after that gives up, because the server, or the way to it, has fallen silent.
import pg from 'pg'
import type { Clock, Timer } from '../../domain/clock.js'
import type { Patience, Waiting } from './pg-patience.js'

export const SILENT = 'The server did not answer'

/** A connection of a pool, lent to us. */
interface Lent {
  readonly client: pg.PoolClient
  /** Prepared statements that were asked there. */
  readonly knows: Set<string>
  /** The line that was last asked there. */
  line: string | undefined
  /** For each statement that is not answered yet, in their order: several on a line only. Called when it is its turn. */
  readonly turns: (() => void)[]
  /** What is to be asked on its line when it has been given back, because somebody waits for a connection. */
  readonly parked: Asked[]
  /** Why nobody is to ask there any more. */
  failed: Error | undefined
  /** When it was last answered. */
  keptAt: number
  readonly whenBroken: (error: Error) => void
}

/** One row as it comes; what it throws is nobody's. */
export type OnRow = (row: never) => void

interface Asked {
  readonly query: pg.QueryConfig
  /** Told of each row; the answer then has none. */
  readonly onRow?: OnRow | undefined
  readonly resolve: (result: pg.QueryResult) => void
  readonly reject: (error: Error) => void
}

/** One that claims, one that reads payloads, one that settles, one for everything else. */
const MOST_KEPT = 4
/** A line that nobody has asked for so long has no connection of its own any more: an idle process needs only one. */
const RESTS_MS = 100

/**
 * Asks on connections of a pool. With `keeps`, a few stay at hand when they are answered: to give one back and to be lent it again is a tenth of what a
 * single enqueue costs on this side, and to plan a statement where it was never asked takes as long as a thousand jobs. It must then be the only one who
 * asks there, and be told when a connection is needed for longer. Of what nobody asks for a while it lets go, so that a process can end, and nobody is
 * asked who was cut off meanwhile.
 *
 * What is asked on a line goes over one connection, in its order, each statement sent without waiting for the answer to the one before: the server
 * has the next one as soon as it is done with one, whatever this process is doing just then (docs/decisions/0037).
 */
export class Asker {
  readonly #pool: Pick<pg.Pool, 'connect'> &
    Partial<Pick<pg.Pool, 'waitingCount' | 'totalCount' | 'idleCount' | 'options'>>
  readonly #patience: Patience
  readonly #clock: Clock
  readonly #idleMs: number
  #keeps: boolean
  /** In the order in which they were answered. */
  readonly #kept: Lent[] = []
  /** Lines on which something is not answered yet: where, or, until it is connected, what is to be asked. */
  readonly #lines = new Map<string, Lent | Asked[]>()
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
  ask(query: pg.QueryConfig, line?: string, onRow?: OnRow): Promise<pg.QueryResult> {
    return new Promise((resolve, reject) => {
      const asked = { query, onRow, resolve, reject }
      if (line !== undefined && this.#keeps) this.#askInLine(line, asked)
      else this.#askAnywhere(asked)
    })
  }

  #askAnywhere(asked: Asked): void {
    const kept = this.#takeKept(asked.query.name)
    if (kept) {
      kept.line = undefined
      this.#askOn(kept, asked)
      return
    }
    this.#pool.connect((error, client) => {
      if (client) this.#askOn(this.#lent(client), asked)
      else asked.reject(error as Error)
    })
  }

  #askInLine(line: string, asked: Asked): void {
    const there = this.#lines.get(line)
    if (Array.isArray(there)) there.push(asked)
    else if (!there) this.#openLine(line, asked)
    // A line that always has something on its way must not keep its connection from whoever waits for one.
    else if (there.parked.length > 0 || this.#pool.waitingCount) there.parked.push(asked)
    else this.#askOn(there, asked)
  }

  #openLine(line: string, first: Asked): void {
    const kept = this.#takeKept(first.query.name, line)
    if (kept) {
      this.#begin(line, kept, [first])
      return
    }
    const all = [first]
    this.#lines.set(line, all)
    this.#pool.connect((error, client) => {
      this.#lines.delete(line)
      if (client) this.#begin(line, this.#lent(client), all)
      else for (const { reject } of all) reject(error as Error)
    })
  }

  #begin(line: string, lent: Lent, all: readonly Asked[]): void {
    lent.line = line
    this.#lines.set(line, lent)
    for (const asked of all) this.#askOn(lent, asked)
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

  /** Rather the line's own, or one where this was asked before; one of another line only where there can be no other. */
  #takeKept(name: string | undefined, line?: string): Lent | undefined {
    const now = this.#clock.monotonic()
    let best = -1
    let worth = 0
    for (let place = this.#kept.length - 1; place >= 0; place -= 1) {
      const lent = this.#kept[place] as Lent
      const found = worthOf(lent, name, line, now)
      if (found > worth) {
        best = place
        worth = found
      }
    }
    if (best >= 0) return this.#kept.splice(best, 1)[0]
    return this.#poolHasMore() ? undefined : this.#kept.pop()
  }

  #poolHasMore(): boolean {
    const { totalCount = 0, idleCount = 0, options } = this.#pool
    return idleCount > 0 || totalCount < (options?.max ?? Number.POSITIVE_INFINITY)
  }

  #lent(client: pg.PoolClient): Lent {
    const lent: Lent = {
      client,
      knows: new Set(),
      line: undefined,
      turns: [],
      parked: [],
      failed: undefined,
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

  #askOn(lent: Lent, { query, onRow, resolve, reject }: Asked): void {
    if (query.name !== undefined) lent.knows.add(query.name)
    let isOver = false
    let waiting: Waiting | undefined
    const over = (error?: Error | null, result?: pg.QueryResult) => {
      if (isOver) return
      isOver = true
      if (waiting) this.#patience.end(waiting)
      this.#answered(lent, error)
      if (error) reject(error)
      else resolve(result as pg.QueryResult)
    }
    // What waits behind others has its own time, from its turn on.
    const turn = () => {
      waiting = this.#patience.begin(() => {
        over(new Error(SILENT))
        hangUp(lent.client)
      })
    }
    if (lent.turns.push(turn) === 1) turn()
    if (onRow) askEach(lent.client, query, onRow, over)
    else void lent.client.query(query, over)
  }

  #answered(lent: Lent, error: Error | null | undefined): void {
    lent.turns.shift()
    if (error) lent.failed ??= error
    const isLast = lent.turns.length === 0
    if (!isLast) lent.turns[0]?.()
    if (!isLast && !lent.failed) return
    if (lent.line !== undefined && this.#lines.get(lent.line) === lent) this.#lines.delete(lent.line)
    // What was sent behind a statement that failed is answered all the same, and still to be heard.
    if (isLast) {
      if (lent.failed) release(lent, lent.failed)
      else this.#keepOrRelease(lent)
    }
    for (const parked of lent.parked.splice(0)) this.#askInLine(lent.line as string, parked)
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

const NO_ROWS = { rows: [] as unknown[] } as pg.QueryResult

/** Without a callback, pg keeps no rows; but with a limit of its own (`query_timeout` in a URL), it tells only who gave one. */
function askEach(
  client: pg.PoolClient,
  config: pg.QueryConfig,
  onRow: OnRow,
  over: (error: Error | null, result?: pg.QueryResult) => void,
): void {
  const tell = onRow as (row: unknown) => void
  const { connectionParameters } = client as unknown as { connectionParameters?: { query_timeout?: unknown } }
  if (connectionParameters?.query_timeout) {
    void client.query(config, (error, result) => {
      if (!error) result.rows.forEach(tell)
      over(error, NO_ROWS)
    })
    return
  }
  const query = new pg.Query(config)
  query.on('row', tell)
  query.on('error', over)
  query.on('end', () => over(null, NO_ROWS))
  client.query(query)
}

/** 0: it belongs to another line. */
function worthOf(lent: Lent, name: string | undefined, line: string | undefined, now: number): number {
  if (line !== undefined && lent.line === line) return 3
  if (lent.line !== undefined && lent.line !== line && now - lent.keptAt < RESTS_MS) return 0
  return name !== undefined && lent.knows.has(name) ? 2 : 1
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
