// The port to a database: what the ledger needs of a connection, and no more. The SQL is the same for every
// adapter (databases/); only how it reaches Postgres differs.

/** A constant SQL text. Written for the schema `redrive`; the adapter puts the configured name in its place. */
export interface Statement {
  readonly text: string
  /** Sent all the time: worth preparing on each connection, where that is possible. */
  readonly hot?: true
}

/** What may be bound to a statement. Sets of rows travel as one JSON text: every driver can carry that. */
export type Param = string | number | boolean | null

/** What can be bound to a piece besides: a list in Postgres' own format (binary-list.ts). */
export type WireParam = Param | Uint8Array

/** One of several statements that are sent together, made when it is its turn. */
export type Piece = () => { readonly statement: Statement; readonly params: readonly WireParam[] }

export interface Queryable {
  /** Runs one statement and returns its rows. Bounded by the statement timeout. */
  query<Row = Record<string, unknown>>(statement: Statement, params?: readonly Param[]): Promise<Row[]>
  /** The time to use instead of the database's own clock, as ISO text; null outside of tests (invariant 5). */
  now(): string | null
  /**
   * Runs statements as one transaction, all or none, each sent without waiting for the answer to the one before: the server
   * works on one while the next is made. Absent where a transaction is open already, and where there is no way to do it.
   */
  together?(pieces: readonly Piece[]): Promise<void>
}

/** Statements that follow each other closely. */
export type Line = 'claims' | 'payloads' | 'ends' | 'more ends'

export interface Transaction extends Queryable {
  /** Runs several statements at once, without parameters: for migrations. */
  execute(text: string): Promise<void>
}

export interface Subscription {
  close(): Promise<void>
}

export interface Channels {
  readonly open: string
  /** Nobody else must know this one. */
  readonly secret?: string
}

export interface Listener {
  onMessage(message: string, channel: string): void
  /** The subscription came (back) up; whatever was said in between was missed. */
  onUp(): void
}

/** A client of the caller's own, with a transaction open on it, for transactional enqueue. */
export interface ForeignClient {
  query(text: string, params: unknown[]): Promise<{ rows: unknown[] }>
}

export interface Database extends Queryable {
  readonly kind: 'server' | 'embedded'
  /** Nobody else can have it open: whatever session it shows as open belongs to a process that is gone. */
  readonly exclusive: boolean
  readonly schema: string
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T>
  /** Like `query`, but tells of each row as it comes, and keeps none. Absent where they come all at once. */
  each?<Row>(statement: Statement, params: readonly Param[], onRow: (row: Row) => void): Promise<void>
  /**
   * The same database, with what is asked on one connection, in its order, each statement sent without waiting for the answer to the one before. Absent where
   * there is no way to do it.
   */
  line?(line: Line): Database
  /** The same statements, run inside a transaction that belongs to the caller. */
  within(client: ForeignClient): Queryable
  /** Hears NOTIFY, and reconnects by itself; undefined where LISTEN is not possible or not needed. */
  listen(channels: Channels, listener: Listener): Subscription | undefined
  close(): Promise<void>
}

export const sql = (strings: TemplateStringsArray, ...parts: readonly string[]): Statement => ({
  text: String.raw({ raw: strings }, ...parts),
})

/** For statements whose plan is the same whatever the tables look like: calls of a function, and inserts of given values. */
export const hot = (statement: Statement): Statement => ({ ...statement, hot: true })

/** On this line, where there can be one. */
export const onLine = (db: Database, line: Line): Database => db.line?.(line) ?? db

/** Tells of each row, as it comes where that is possible. */
export async function eachRow<Row>(
  db: Database,
  statement: Statement,
  params: readonly Param[],
  onRow: (row: Row) => void,
): Promise<void> {
  if (db.each) await db.each(statement, params, onRow)
  else for (const row of await db.query<Row>(statement, params)) onRow(row)
}
