// Tokens of the HTTP API, known by name and by the SHA-256 of their secret.
import type { Scope } from '../domain/scope.js'
import { type Queryable, sql } from './database.js'
import { millis, toDate, toJson } from './rows.js'

export interface Token {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly createdAt: Date
  readonly createdBy: string
}

export interface StoredToken extends Token {
  /** SHA-256 of the secret, hex. */
  readonly hash: string
}

/** Every request is compared with each of them. */
export const MOST_TOKENS = 1_000

const COLUMNS = `name, hash, scopes::text AS scopes, ${millis('created_at')} AS created_at, created_by`

// A name that is taken, and one more than there may be, insert nothing.
const ADD = sql`
  INSERT INTO redrive.token (name, hash, scopes, created_at, created_by)
  SELECT $1, $2, $3::json, coalesce($4::timestamptz, now()), $5
  WHERE (SELECT count(*) FROM redrive.token) < $6::integer
  ON CONFLICT DO NOTHING RETURNING ${COLUMNS}`

/** Undefined: the name is taken, or there are too many. */
export async function addToken(
  db: Queryable,
  token: Pick<StoredToken, 'name' | 'hash' | 'scopes' | 'createdBy'>,
): Promise<StoredToken | undefined> {
  const { name, hash, scopes, createdBy } = token
  const [row] = await db.query<Row>(ADD, [name, hash, JSON.stringify(scopes), db.now(), createdBy, MOST_TOKENS])
  return row && toToken(row)
}

const ALL = sql`SELECT ${COLUMNS} FROM redrive.token ORDER BY name LIMIT $1::integer`

export async function allTokens(db: Queryable): Promise<StoredToken[]> {
  return (await db.query<Row>(ALL, [MOST_TOKENS])).map(toToken)
}

const REMOVE = sql`DELETE FROM redrive.token WHERE name = $1 RETURNING ${COLUMNS}`

/** Undefined: there is none of this name. */
export async function removeToken(db: Queryable, name: string): Promise<StoredToken | undefined> {
  const [row] = await db.query<Row>(REMOVE, [name])
  return row && toToken(row)
}

interface Row {
  name: string
  hash: string
  scopes: string
  created_at: number
  created_by: string
}

const toToken = (row: Row): StoredToken => ({
  name: row.name,
  hash: row.hash,
  scopes: toJson(row.scopes) as Scope[],
  createdAt: toDate(row.created_at),
  createdBy: row.created_by,
})
