// Requests that were answered under an Idempotency-Key. Each token has keys of its own.
import { type Queryable, sql } from './database.js'

export interface KeyedRequest {
  readonly token: string
  readonly key: string
  /** A hash of what was asked: the same key with something else is a mistake. */
  readonly request: string
}

export interface KeyedAnswer {
  readonly status: number
  readonly body: string
}

/** `mine`: do it, then `keep` the answer. */
export type Taken =
  | { readonly state: 'mine' }
  | { readonly state: 'under way' }
  | { readonly state: 'other request' }
  | { readonly state: 'answered'; readonly answer: KeyedAnswer }

// Also takes over one that is past its time: its answer is forgotten, or its process died while doing it.
const TAKE = sql`
  INSERT INTO redrive.idempotency_key AS k (token, key, request, expires_at)
  VALUES ($1, $2, $3, coalesce($4::timestamptz, now()) + $5::double precision * interval '1 millisecond')
  ON CONFLICT (token, key) DO UPDATE
  SET request = excluded.request, status = NULL, body = NULL, expires_at = excluded.expires_at
  WHERE k.expires_at <= coalesce($4::timestamptz, now())
  RETURNING key`

const READ = sql`SELECT request, status, body FROM redrive.idempotency_key WHERE token = $1 AND key = $2`

export async function takeKey(db: Queryable, { token, key, request }: KeyedRequest, holdMs: number): Promise<Taken> {
  const taken = await db.query(TAKE, [token, key, request, db.now(), holdMs])
  if (taken.length > 0) return { state: 'mine' }
  type Row = { request: string; status: number | null; body: string | null }
  const [row] = await db.query<Row>(READ, [token, key])
  // Given back between the two statements: whoever asks again gets it.
  if (!row) return { state: 'under way' }
  if (row.request !== request) return { state: 'other request' }
  if (row.status === null) return { state: 'under way' }
  return { state: 'answered', answer: { status: row.status, body: row.body ?? '' } }
}

const KEEP = sql`
  UPDATE redrive.idempotency_key
  SET status = $4::smallint, body = $5, expires_at = coalesce($6::timestamptz, now()) + $7::double precision * interval '1 millisecond'
  WHERE token = $1 AND key = $2 AND request = $3 AND status IS NULL`

export async function keepAnswer(
  db: Queryable,
  { token, key, request }: KeyedRequest,
  { status, body }: KeyedAnswer,
  keptMs: number,
): Promise<void> {
  await db.query(KEEP, [token, key, request, status, body, db.now(), keptMs])
}

const GIVE_BACK = sql`
  DELETE FROM redrive.idempotency_key WHERE token = $1 AND key = $2 AND request = $3 AND status IS NULL`

export async function giveBackKey(db: Queryable, { token, key, request }: KeyedRequest): Promise<void> {
  await db.query(GIVE_BACK, [token, key, request])
}

// Those past their time and, beyond `$2` of them, answers that would be next. Never what is under way: it would be done twice. One that
// is taken over while we wait for it is under way as well.
const FORGET = sql`
  DELETE FROM redrive.idempotency_key
  WHERE (status IS NOT NULL OR expires_at <= coalesce($1::timestamptz, now())) AND ctid = ANY (ARRAY(
    (SELECT ctid FROM redrive.idempotency_key WHERE expires_at <= coalesce($1::timestamptz, now()) ORDER BY expires_at LIMIT $3::integer)
    UNION ALL
    (SELECT ctid FROM redrive.idempotency_key WHERE status IS NOT NULL
     ORDER BY expires_at DESC OFFSET $2::integer LIMIT $3::integer)))`

export async function forgetKeys(db: Queryable, most: number, batch: number): Promise<void> {
  await db.query(FORGET, [db.now(), most, batch])
}
