// Server Postgres through `pg`: a pool of our own from a URL, a pool the user brings, or anything that can
// query(text, params) on one connection.
import pg from 'pg'
import { type Clock, systemClock } from '../../domain/clock.js'
import { RedriveError } from '../../domain/errors.js'
import type {
  Channels,
  Database,
  ForeignClient,
  Line,
  Listener,
  Param,
  Piece,
  Queryable,
  Statement,
  Subscription,
  Transaction,
} from '../database.js'
import { statementTexts } from '../schema-name.js'
import { Asker, askClient, type OnRow, SILENT } from './pg-ask.js'
import { type Lend, lend } from './pg-lend.js'
import { subscribe } from './pg-listener.js'
import { Patience } from './pg-patience.js'
import { preparedNames } from './pg-prepared.js'
import { sendTogether } from './pg-together.js'

export interface PgOptions {
  readonly schema: string
  readonly now?: () => string | null
  readonly clock?: Clock
  readonly statementTimeoutMs?: number
  readonly poolSize?: number
  /** So long a connection is kept that nobody asks. */
  readonly idleMs?: number
  /** Off: wake by polling alone, as behind a pooler that cannot LISTEN. */
  readonly listen?: boolean
}

const DEFAULT_STATEMENT_TIMEOUT_MS = 30_000
const CONNECT_TIMEOUT_MS = 10_000
/** What lies between us and the server may forget a connection that is silent for minutes. */
const IDLE_MS = 10_000
/** So long a connection may be silent before the system asks whether the other end is there: the way to it is not forgotten then. */
const KEEP_ALIVE_MS = 30_000
/** How much longer than the server we wait for its answer: the last resort, for one that has fallen silent. */
const SILENCE_MS = 5_000

type PoolLike = Pick<pg.Pool, 'query' | 'connect'> & { options?: pg.PoolConfig }

const isPool = (value: object): value is PoolLike => 'connect' in value && 'totalCount' in value

/** A pool of our own for a URL or for the PG* variables; closed with the database. */
export function openPg(connectionString: string | undefined, options: PgOptions): Database {
  const timeoutMs = options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS
  const pool = new pg.Pool({
    ...(connectionString === undefined ? {} : { connectionString }),
    max: options.poolSize ?? 10,
    application_name: 'redrive',
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    idleTimeoutMillis: options.idleMs ?? IDLE_MS,
    statement_timeout: timeoutMs,
    idle_in_transaction_session_timeout: timeoutMs * 2,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    pipeline: true,
  } as pg.PoolConfig)
  // An idle connection that breaks is replaced at the next query; without a listener it would end the process.
  pool.on('error', () => {})
  return pooled(pool, options, () => pool.end(), pool)
}

/** A pool or client that belongs to the user: used, never closed. */
export function adoptPg(client: ForeignClient | PoolLike, options: PgOptions): Database {
  return isPool(client) ? pooled(client, options, async () => {}) : single(client as ForeignClient, options)
}

/** `own`: the same pool, where it is ours, and so sends without waiting and can be given bytes. */
function pooled(pool: PoolLike, options: PgOptions, end: () => Promise<void>, own?: pg.Pool): Database {
  const render = statementTexts(options.schema)
  const now = options.now ?? (() => null)
  const clock = options.clock ?? systemClock
  const patience = new Patience(clock, (options.statementTimeoutMs ?? DEFAULT_STATEMENT_TIMEOUT_MS) + SILENCE_MS)
  const littlePatience = new Patience(clock, SILENCE_MS)
  const idleMs = options.idleMs ?? IDLE_MS
  const asker = new Asker(pool, { patience, clock, idleMs, keeps: own !== undefined })
  const lendOne: Lend = work => {
    asker.giveBack()
    return lend(pool, work)
  }
  const subscriptions = new Set<Subscription>()
  const prepared = preparedNames()

  const ask = async <Row>(
    statement: Statement,
    params: readonly Param[] = [],
    line?: Line,
    onRow?: OnRow,
  ): Promise<Row[]> => {
    const text = render(statement)
    const values = params as Param[]
    const name = statement.hot ? prepared.nameOf(text) : undefined
    if (name === undefined) return rowsOf(asker.ask({ text, values }, line, onRow))
    const answer = asker.ask({ text, values, name }, line, onRow).catch(error => {
      if (prepared.wasLost(error)) return asker.ask({ text, values }, line, onRow)
      throw error
    })
    return rowsOf(answer)
  }
  const eachOn =
    (line?: Line): NonNullable<Database['each']> =>
    async (statement, params, onRow) =>
      void (await ask(statement, params, line, onRow))
  // A pool that is not ours may be another version of pg, which would not know our queries.
  const asking = (line?: Line): Pick<Database, 'query' | 'each'> => ({
    query: (statement, params) => ask(statement, params, line),
    ...(own && { each: eachOn(line) }),
  })
  const { query } = asking()

  const together = async (pieces: readonly Piece[]) => {
    const [first] = pieces
    if (!first) return
    if (pieces.length > 1) return sendTogether(pieces, { lend: lendOne, prepared, render, clock, patience })
    const { statement, params } = first()
    await query(statement, params as readonly Param[])
  }

  const lines = new Map<Line, Database>()
  const database: Database = {
    kind: 'server',
    exclusive: false,
    schema: options.schema,
    now,
    ...asking(),
    ...(own && {
      line(name: Line) {
        const line = lines.get(name) ?? { ...database, ...asking(name) }
        lines.set(name, line)
        return line
      },
    }),
    ...(own && { together: (pieces: readonly Piece[]) => together(pieces).catch(throwClear) }),
    transaction<T>(work: (tx: Transaction) => Promise<T>) {
      const inTransaction = lendOne(async (client, broke) => {
        // Nothing is prepared: a transaction would not outlive the loss of a statement.
        const tx: Transaction = {
          now,
          query: (statement, params = []) =>
            rowsOf(askClient(client, { text: render(statement), values: params as Param[] }, patience)),
          execute: async text => void (await client.query(text)),
        }
        try {
          await askClient(client, { text: 'BEGIN' }, patience)
          const result = await work(tx)
          await askClient(client, { text: 'COMMIT' }, patience)
          return result
        } catch (error) {
          await askClient(client, { text: 'ROLLBACK' }, littlePatience).catch(broke)
          throw error
        }
      })
      return inTransaction.catch(throwClear)
    },
    within: client => within(client, render, now),
    listen(channels: Channels, listener: Listener) {
      if (options.listen === false || !pool.options) return undefined
      const subscription = subscribe(connectionOf(pool.options), channels, listener, clock)
      subscriptions.add(subscription)
      return subscription
    },
    async close() {
      await Promise.all([...subscriptions].map(subscription => subscription.close()))
      asker.close()
      await end()
    },
  }
  return database
}

/** pg hides the password of a pool's options from being copied with the rest. */
const connectionOf = (options: pg.PoolConfig): pg.ClientConfig =>
  options.password === undefined ? options : { ...options, password: options.password }

/** One connection that can only query: a transaction keeps every other statement waiting until it has ended. */
function single(client: ForeignClient, options: PgOptions): Database {
  const render = statementTexts(options.schema)
  const now = options.now ?? (() => null)
  let line: Promise<unknown> = Promise.resolve()
  const inTurn = <T>(work: () => Promise<T>): Promise<T> => {
    const turn = line.then(work, work)
    line = turn.catch(() => {})
    return turn
  }
  const direct = within(client, render, now)
  return {
    kind: 'server',
    exclusive: false,
    schema: options.schema,
    now,
    query: (statement, params) => inTurn(() => direct.query(statement, params)),
    transaction: work =>
      inTurn(async () => {
        await client.query('BEGIN', [])
        try {
          const result = await work({ ...direct, execute: text => runAll(client, text) })
          await client.query('COMMIT', [])
          return result
        } catch (error) {
          await client.query('ROLLBACK', []).catch(() => {})
          throw error
        }
      }),
    within: other => within(other, render, now),
    listen: () => undefined,
    close: async () => {},
  }
}

/** Several statements at once: where `query` takes one only (PGlite), there is `exec` for it. */
async function runAll(client: ForeignClient & { exec?: (text: string) => Promise<unknown> }, text: string) {
  if (client.exec) await client.exec(text)
  else await client.query(text, [])
}

function within(client: ForeignClient, render: (statement: Statement) => string, now: () => string | null): Queryable {
  return {
    now,
    query: async <Row>(statement: Statement, params: readonly Param[] = []) =>
      (await client.query(render(statement), [...params]).catch(throwClear)).rows as Row[],
  }
}

async function rowsOf<Row>(answer: Promise<pg.QueryResult>): Promise<Row[]> {
  try {
    return (await answer).rows
  } catch (error) {
    // Made where the answer was read: who asked says more.
    Error.captureStackTrace(error as Error)
    return throwClear(error as Error)
  }
}

const QUERY_CANCELED = '57014'

function throwClear(error: Error & { code?: string }): never {
  if (error.code === QUERY_CANCELED || error.message === SILENT) {
    throw new RedriveError('STATEMENT_TIMEOUT', `A statement was given up: ${error.message}`, { cause: error })
  }
  throw error
}
