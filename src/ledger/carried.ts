// Jobs that a broker carries come into the ledger when they do not simply succeed: taken in as if they had been claimed
// here, and settled by the ordinary statements, in one transaction. From then on they stay here. A message whose job was
// taken in before (its acknowledgement was lost) is refused: it is in the ledger already, or has ended there.
import type { JobId, Lease, SessionId } from '../domain/ids.js'
import type { Settlement } from '../domain/settlement.js'
import { type Database, type Queryable, sql, type Transaction } from './database.js'
import { settlingShard } from './settle/tally.js'
import { settle } from './settle.js'

/** A job as its message told it, and for how long it has been in our hands. */
export interface Adoption {
  readonly id: JobId
  readonly queue: string
  readonly name: string
  readonly priority: number
  /** Valid JSON. */
  readonly payloadText: string
  readonly service?: string | undefined
  readonly maxAttempts?: number | undefined
  readonly tenant?: string | undefined
  readonly user?: string | undefined
  readonly project?: string | undefined
  readonly trace?: string | undefined
  readonly createdAt?: number | undefined
  readonly heldForMs: number
}

const ADOPT = sql`
  INSERT INTO redrive.job (id, in_line, state, queue, name, service, max_attempts, priority, payload, run_at, created_at,
    first_claimed_at, claimed_at, lease, session_id, attempt, started, tenant, user_id, project, trace, line)
  SELECT i.id, true, 'active', i.queue, i.name, i.service, i.max_attempts, i.priority, i.payload, i.created, i.created,
    i.claimed, i.claimed, nextval('redrive.lease_seq'), $4::bigint, 1, true, i.tenant, i.user_id, i.project, i.trace,
    redrive.next_line(i.priority)
  FROM (
    SELECT t.*, clock.now - t.held_ms * interval '1 millisecond' AS claimed,
      least(coalesce(to_timestamp(t.created_ms / 1000), clock.now), clock.now - t.held_ms * interval '1 millisecond') AS created
    FROM (SELECT coalesce($3::timestamptz, now()) AS now) clock, ROWS FROM (
      json_to_recordset($1::json) AS (id uuid, queue text, name text, service text, max_attempts smallint,
        priority smallint, created_ms double precision, held_ms double precision, tenant text, user_id text, project text,
        trace text),
      json_array_elements($2::json)
    ) AS t(id, queue, name, service, max_attempts, priority, created_ms, held_ms, tenant, user_id, project, trace, payload)
  ) i
  WHERE NOT EXISTS (SELECT FROM redrive.dead_letter d WHERE d.id = i.id)
    AND NOT EXISTS (SELECT FROM redrive.finished_job f WHERE f.id = i.id)
  ON CONFLICT (id) DO NOTHING
  RETURNING id, lease`

// INVARIANT: whoever takes a job in, and whoever says that it had succeeded, go one after the other. Without that, one who
// waits for another's row to be committed would find it gone again, and would not see the dead letter it has become.
const LOCK = sql`
  SELECT count(pg_advisory_xact_lock(hashtextextended('redrive.carried ' || id, 0)))
  FROM (SELECT id FROM json_array_elements_text($1::json) AS id ORDER BY id) ids`

/** For the length of the transaction. */
export async function lockCarried(tx: Queryable, ids: readonly JobId[]): Promise<void> {
  await tx.query(LOCK, [JSON.stringify(ids)])
}

/** Takes jobs in as running ones of a session. Returns the lease of each; who is missing is in the ledger already. */
async function adopt(tx: Queryable, session: SessionId, jobs: readonly Adoption[]): Promise<Map<JobId, Lease>> {
  await lockCarried(
    tx,
    jobs.map(({ id }) => id),
  )
  const payloads = `[${jobs.map(({ payloadText }) => payloadText).join(',')}]`
  const rows = await tx.query<{ id: JobId; lease: string | number }>(ADOPT, [
    JSON.stringify(jobs.map(adoptionRow)),
    payloads,
    tx.now(),
    session,
  ])
  return new Map(rows.map(({ id, lease }) => [id, String(lease) as Lease]))
}

/** By the columns of the statements that take it in. */
export const adoptionRow = (job: Adoption) => ({
  id: job.id,
  queue: job.queue,
  name: job.name,
  service: job.service,
  max_attempts: job.maxAttempts,
  priority: job.priority,
  created_ms: job.createdAt,
  held_ms: job.heldForMs,
  tenant: job.tenant,
  user_id: job.user,
  project: job.project,
  trace: job.trace,
})

// A running job that this session took in before, and did not hear of: a claim of it would say that it has not started.
const ADOPTED = sql`
  SELECT id, lease FROM redrive.job
  WHERE id IN (SELECT json_array_elements_text($1::json)::uuid) AND session_id = $2::bigint AND state = 'active'
    AND attempt = 1 AND lost = 0 AND started`

/**
 * Takes in jobs that go on running, as this session's. Returns their leases, by which they are settled from then on. Asked
 * again after an answer that was lost, it finds them.
 */
export async function adoptRunning(
  db: Database,
  session: SessionId,
  jobs: readonly Adoption[],
): Promise<Map<JobId, Lease>> {
  const adopted = await db.transaction(tx => adopt(tx, session, jobs))
  const missing = jobs.filter(({ id }) => !adopted.has(id)).map(({ id }) => id)
  if (missing.length === 0) return adopted
  const rows = await db.query<{ id: JobId; lease: string | number }>(ADOPTED, [JSON.stringify(missing), session])
  for (const { id, lease } of rows) adopted.set(id, String(lease) as Lease)
  return adopted
}

export interface Parked {
  readonly job: Adoption
  readonly outcome: Settlement['outcome']
  readonly decision: Settlement['decision']
}

/** Lanes below belong to the settlers of a worker. */
const PARKING_LANE = 15

/** Takes jobs in and settles them, all or none. Returns those that were refused, in their order. */
export async function park(db: Database, session: SessionId, batch: readonly Parked[]): Promise<Parked[]> {
  const once = () =>
    db.transaction(async tx => {
      const leases = await adopt(
        tx,
        session,
        batch.map(({ job }) => job),
      )
      const refused: Parked[] = []
      const settlements: Settlement[] = []
      for (const parked of batch) {
        const { id } = parked.job
        const lease = leases.get(id)
        // Twice in one batch: the same job, once.
        leases.delete(id)
        if (lease === undefined) refused.push(parked)
        else settlements.push({ id, lease, outcome: parked.outcome, decision: parked.decision })
      }
      await settle(onTransaction(db, tx), settlements, settlingShard(session, PARKING_LANE))
      return refused
    })
  try {
    return await once()
  } catch (error) {
    if (!isMovedPartition(error)) throw error
    return once()
  }
}

/** The ordinary statements, inside a transaction that is open. */
const onTransaction = (db: Database, tx: Transaction): Database => ({
  kind: db.kind,
  exclusive: db.exclusive,
  schema: db.schema,
  query: (statement, params) => tx.query(statement, params),
  now: () => tx.now(),
  transaction: work => work(tx),
  within: client => db.within(client),
  listen: (channels, listener) => db.listen(channels, listener),
  close: async () => {},
})

/** As in into-history.ts; here the whole transaction is made again. */
const isMovedPartition = (error: unknown): boolean => {
  const { code, constraint } = error as { code?: unknown; constraint?: unknown }
  return code === '23514' && !constraint
}
