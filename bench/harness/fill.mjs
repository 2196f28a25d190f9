// Fills Redrive's ledger with a million of something, faster than it could happen: a row that really came about is
// multiplied in the database, so that a change of the schema does not matter here.

/** Time-ordered ids, as real ones are. @param {string} g */
const ID = g => `(lpad(to_hex($2::bigint + ${g} / 100), 12, '0') || '7' || substr(md5(${g}::text), 1, 3) || '8'
  || substr(md5(${g}::text), 4, 15))::uuid`

/**
 * @param {string} table
 * @param {string} changes pairs of column and expression for `jsonb_build_object`; `g` counts from 1
 */
const MULTIPLY = (table, changes) => `
  INSERT INTO redrive.${table} (COLUMNS OF ${table})
  SELECT COLUMNS OF ${table} FROM (SELECT origin FROM redrive.${table} origin LIMIT 1) one, generate_series(1, $1::integer) g,
    LATERAL jsonb_populate_record(one.origin, jsonb_build_object(${changes})) copy`

const WAITING = MULTIPLY('job', `'id', ${ID('g')}, 'line', redrive.next_line(5::smallint)`)
const RETRYING = MULTIPLY(
  'job',
  `'id', ${ID('g')}, 'line', redrive.next_line(5::smallint), 'state', 'retrying', 'in_line', false, 'attempt', 1,
   'run_at', now() + interval '1 day' + g * interval '1 millisecond'`,
)
const DEAD = MULTIPLY(
  'dead_letter',
  `'id', ${ID('g')}, 'seq', nextval('redrive.job_seq'), 'name', 'task-' || g % 30,
   'queue', CASE WHEN g % 100000 = 7 THEN 'rare' ELSE 'queue-' || g % 10 END,
   'kind', (enum_range(NULL::redrive.failure_kind))[1 + g % 7],
   'fingerprint', CASE WHEN g % 100000 = 7 THEN 'v1:rare' ELSE 'v1:' || g % 500 END,
   'service', CASE WHEN g % 100000 = 7 THEN 'rare' ELSE 'service-' || g % 20 END,
   'assigned_to', CASE WHEN g % 100000 = 7 THEN 'rare' WHEN g % 10 = 0 THEN 'person-' || g % 70 END,
   'status', CASE WHEN g % 20 = 0 THEN 'permanently_failed' WHEN g % 20 < 3 THEN 'recovered' ELSE 'pending' END,
   'resolved_at', CASE WHEN g % 20 < 3 THEN now() END,
   'message', 'Order ' || g || ' cannot be charged' || CASE WHEN g = $1::integer / 2 THEN ': needle' ELSE '' END,
   'died_at', now() - ($1::integer - g) * interval '1 second'`,
)
const ATTEMPTS = MULTIPLY('attempt', `'job_id', ${ID('g')}`)

// As settling would have counted these deaths and retention would have drawn them together: by five minutes for the last three
// hours, by days before. Three failures each.
const CAUSES = `
  INSERT INTO redrive.failure_tally (fingerprint, queue, name, version, bucket, shard, failures, deaths, last_at, first_job, sample_job)
  SELECT fingerprint, queue, name, '', bucket, 0, 3 * count(*), count(*), max(died_at), (array_agg(id))[1], (array_agg(id))[1]
  FROM (
    SELECT *, CASE WHEN died_at > now() - interval '3 hours' THEN date_bin('5 minutes', died_at, timestamptz 'epoch')
                   ELSE date_trunc('day', died_at, 'UTC') END AS bucket
    FROM redrive.dead_letter
  ) letter GROUP BY fingerprint, queue, name, bucket
  ON CONFLICT DO NOTHING`

/**
 * @typedef {import('./arena.mjs').Arena} Arena
 */

/** One more job waits already; it is the model of the others. @param {Arena} arena @param {number} count */
export async function fillWaiting(arena, count) {
  const producer = await arena.process()
  await producer.ask('enqueueMany', { count: 1, batch: 1 })
  await multiply(arena, WAITING, count - 1)
}

/** @param {Arena} arena @param {number} count */
export async function fillRetrying(arena, count) {
  const producer = await arena.process()
  await producer.ask('enqueueMany', { count: 1, batch: 1 })
  await multiply(arena, RETRYING, count)
  await arena.meter?.client.query(`DELETE FROM redrive.job WHERE state = 'waiting'`)
}

/** One job really dies; the others, and their attempts, are like it. @param {Arena} arena @param {number} count */
export async function fillDead(arena, count) {
  const one = await arena.process()
  await one.ask('enqueueMany', { count: 1, batch: 1 })
  await one.ask('work', { handler: 'die' })
  while ((await one.ask('unsettled')) > 0);
  await one.close()
  await multiply(arena, DEAD, count)
  await multiply(arena, ATTEMPTS, count)
}

/** The causes of what died, as far as `fillDead` went. @param {Arena} arena */
export async function fillCauses(arena) {
  await arena.meter?.client.query(CAUSES)
  await arena.meter?.client.query('VACUUM ANALYZE')
}

/** Then what autovacuum would have done by now. @param {Arena} arena @param {string} statement @param {number} count */
async function multiply(arena, statement, count) {
  await arena.meter?.client.query(await withColumns(arena, statement), [count, Date.now() - count])
  await arena.meter?.client.query('VACUUM ANALYZE')
}

const COLUMNS = `
  SELECT string_agg(quote_ident(column_name), ', ' ORDER BY ordinal_position) AS names FROM information_schema.columns
  WHERE table_schema = 'redrive' AND table_name = $1 AND is_generated = 'NEVER'`

/** Generated columns cannot be given. @param {Arena} arena @param {string} statement */
async function withColumns(arena, statement) {
  const [, table] = /COLUMNS OF (\w+)/.exec(statement) ?? []
  const found = await arena.meter?.client.query(COLUMNS, [table])
  return statement.replaceAll(`COLUMNS OF ${table}`, found?.rows[0].names)
}
