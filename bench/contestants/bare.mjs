// No product: the least that must be said to Postgres for a job to be durable, shared by workers, and kept when it has ended. There is no
// lease, class of failure, group, policy, priority, schedule or metric. What these statements cannot do so many times as fast as a
// peer, on the machine of the run, nothing that has to say more than they do can.
import pg from 'pg'

export const label = 'bare statements'
export const store = 'postgres'

class Permanent extends Error {}

/** @param {string} message */
export const permanent = message => new Permanent(message)

// Half of each page is left free, so that a claim finds room for its row beside it and touches no index.
const SCHEMA = `
  CREATE TABLE job (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, taken boolean NOT NULL, attempt integer NOT NULL, payload text NOT NULL
  ) WITH (fillfactor = 50);
  CREATE TABLE delayed (due_at timestamptz NOT NULL, attempt integer NOT NULL, payload text NOT NULL);
  CREATE TABLE finished (id bigint NOT NULL, finished_at timestamptz NOT NULL, payload text NOT NULL);
  CREATE TABLE failure (id bigint NOT NULL, failed_at timestamptz NOT NULL, error text NOT NULL);
  CREATE TABLE dead (id bigint NOT NULL, died_at timestamptz NOT NULL, error text NOT NULL, payload text NOT NULL);`

const STATEMENTS = {
  addMany: 'INSERT INTO job (taken, attempt, payload) SELECT false, 1, unnest($1::text[])',
  add: 'INSERT INTO job (taken, attempt, payload) VALUES (false, 1, $1)',
  /** As taken by whoever listens, who is told all of it. */
  handOver: `
    WITH added AS (INSERT INTO job (taken, attempt, payload) VALUES (true, 1, $1) RETURNING id, payload)
    SELECT pg_notify('bare', id || ' ' || payload) FROM added`,
  take: `
    UPDATE job SET taken = true WHERE id = ANY (ARRAY(
      SELECT id FROM job WHERE NOT taken ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING id, attempt, payload`,
  finish: `
    WITH ended AS (DELETE FROM job WHERE id = ANY ($1::bigint[]) RETURNING id, payload)
    INSERT INTO finished SELECT id, now(), payload FROM ended`,
  fail: `
    WITH failed AS (SELECT * FROM unnest($1::bigint[], $2::text[]) AS f (id, error)),
    ended AS (DELETE FROM job j USING failed f WHERE j.id = f.id RETURNING j.attempt, j.payload),
    noted AS (INSERT INTO failure SELECT id, now(), error FROM failed)
    INSERT INTO delayed SELECT now() + interval '100 ms', attempt + 1, payload FROM ended`,
  bury: `
    WITH failed AS (SELECT * FROM unnest($1::bigint[], $2::text[]) AS f (id, error)),
    ended AS (DELETE FROM job j USING failed f WHERE j.id = f.id RETURNING j.id, f.error, j.payload)
    INSERT INTO dead SELECT id, now(), error, payload FROM ended`,
  promote: `
    WITH due AS (DELETE FROM delayed WHERE due_at <= now() RETURNING attempt, payload)
    INSERT INTO job (taken, attempt, payload) SELECT false, attempt, payload FROM due`,
  redrive: `
    WITH back AS (DELETE FROM dead RETURNING payload)
    INSERT INTO job (taken, attempt, payload) SELECT false, 1, payload FROM back`,
}

const ENDS = /** @type {const} */ (['finish', 'fail', 'bury'])
const AT_ONCE = 1_000
const AHEAD = 2_000
const LANES = 2
const LOOK_MS = 2
const PROMOTE_MS = 25

/** @param {string} connectionString */
export async function prepare(connectionString) {
  const client = new pg.Client(connectionString)
  await client.connect()
  await client.query(SCHEMA)
  await client.end()
}

/** `handsOver`: a single job goes to whoever listens, unclaimed: it is not for more workers than one. */
export async function open(connectionString, { handsOver = false } = {}) {
  const pool = new pg.Pool({ connectionString, max: LANES + 2 })
  pool.on('error', () => {})
  /** Prepared. @param {keyof typeof STATEMENTS} name @param {unknown[]} [values] */
  const say = (name, values) => pool.query({ name, text: STATEMENTS[name], values })
  const count = async table => (await pool.query(`SELECT count(*)::int AS count FROM ${table}`)).rows[0].count
  const unsettled = async () => (await count('job')) + (await count('delayed'))
  return {
    enqueueMany: items => say('addMany', [items.map(({ payload }) => JSON.stringify(payload))]),
    enqueueOne: payload => say(handsOver ? 'handOver' : 'add', [JSON.stringify(payload)]),
    work: handler => (handsOver ? listen(connectionString, handler, say) : work(handler, say)),
    unsettled,
    counts: async () => ({
      unfinished: await unsettled(),
      completed: await count('finished'),
      dead: await count('dead'),
    }),
    redriveAll: () => say('redrive'),
    close: () => pool.end(),
  }
}

/** One claim under way, ends written on two lanes as soon as one is free. */
function work(handler, say) {
  const ended = { finish: [], fail: [], bury: [] }
  let held = 0
  let lanes = LANES
  let stopped = false
  let soon = false

  const flush = async () => {
    soon = false
    lanes -= 1
    for (const end of ENDS) {
      const some = ended[end].splice(0, AT_ONCE)
      if (some.length === 0) continue
      const ids = some.map(({ id }) => id)
      await say(end, end === 'finish' ? [ids] : [ids, some.map(({ error }) => error.stack)])
    }
    lanes += 1
    if (Object.values(ended).some(list => list.length > 0)) flushSoon()
  }
  const flushSoon = () => {
    if (soon || lanes === 0) return
    soon = true
    setImmediate(flush)
  }
  const run = async ({ id, attempt, payload }) => {
    try {
      await handler(JSON.parse(payload), attempt)
      ended.finish.push({ id })
    } catch (error) {
      ended[error instanceof Permanent ? 'bury' : 'fail'].push({ id, error })
    }
    held -= 1
    flushSoon()
  }
  const take = async () => {
    while (!stopped) {
      const { rows } = await say('take', [Math.min(AT_ONCE, AHEAD - held)])
      held += rows.length
      for (const row of rows) void run(row)
      if (rows.length === 0) await new Promise(resolve => setTimeout(resolve, LOOK_MS))
    }
  }
  const promote = async () => {
    while (!stopped) {
      await new Promise(resolve => setTimeout(resolve, PROMOTE_MS))
      await say('promote')
    }
  }
  const running = Promise.all([take(), promote()])
  return {
    async stop() {
      stopped = true
      await running
    },
  }
}

async function listen(connectionString, handler, say) {
  const client = new pg.Client(connectionString)
  await client.connect()
  client.on('notification', ({ payload = '' }) => {
    const space = payload.indexOf(' ')
    void handler(JSON.parse(payload.slice(space + 1)), 1).then(() => say('finish', [[payload.slice(0, space)]]))
  })
  await client.query('LISTEN bare')
  return { stop: () => client.end() }
}
