// Redrive through its public API, as built. Throughput: concurrency 100; everything else as it comes.
import pg from 'pg'
import { defineJob, fixed, openRedrive, PermanentError } from '../../dist/index.js'

export const label = 'redrive'
export const store = 'postgres'

/** @param {string} message */
export const permanent = message => new PermanentError(message)

const QUEUE = 'bench'

/** @param {string} database */
export async function prepare(database) {
  await (await openRedrive({ database })).close()
}

// Retries are soon, so that the mixed load ends soon.
const SOON = { attempts: 3, backoff: fixed({ delayMs: 100 }), jitter: false }

/**
 * `usualPolicy`: retries as by default. `service`: what the jobs call, which gives them a breaker and a budget. `rateLimit`:
 * how many may start in a time.
 * @param {string} address
 * @param {{ pollMs?: number, usualPolicy?: boolean, service?: string, rateLimit?: object }} options
 */
export async function open(address, { pollMs, usualPolicy = false, service, rateLimit } = {}) {
  const redrive = await openRedrive({ ...databaseOf(address), ...(pollMs && { pollMs }) })
  const job = handler =>
    defineJob({
      name: 'task',
      queue: QUEUE,
      ...(service && { service }),
      ...(rateLimit && { rateLimit }),
      ...(usualPolicy ? {} : { retry: SOON }),
      handler,
    })
  const sent = job()
  const statistics = async () => (await redrive.operator.queues.statistics()).find(({ queue }) => queue === QUEUE)
  const unfinished = found => found.waiting + found.active + found.scheduled + found.retrying + found.held
  // On a server, what is left is a bare count, as it is for the peers there.
  const { database } = databaseOf(address)
  const pool = database?.startsWith('postgres') ? new pg.Pool({ connectionString: database, max: 2 }) : undefined
  pool?.on('error', () => {})
  const unsettled = async () =>
    pool
      ? (await pool.query('SELECT count(*)::int AS count FROM redrive.job')).rows[0].count
      : unfinished(await statistics())
  return {
    enqueueMany: items => redrive.enqueueMany(sent, items),
    enqueueOne: payload => redrive.enqueue(sent, payload),
    async work(handler, { concurrency = 100 }) {
      const worker = redrive.work([job((payload, { attempt }) => handler(payload, attempt))], { concurrency })
      return { stop: () => worker.stop({ graceMs: 1_000 }) }
    },
    unsettled,
    async counts() {
      const found = await statistics()
      return { unfinished: unfinished(found), completed: found.completed, dead: found.dead }
    },
    redriveAll: () => redrive.operator.deadLetters.retryMany({ all: true }),
    async close() {
      await redrive.close({ graceMs: 1_000 })
      await pool?.end()
    },
  }
}

/** @param {string} address a URL of Postgres, `memory:`, or `folder:` and a path */
function databaseOf(address) {
  if (address === 'memory:') return { database: ':memory:' }
  if (address.startsWith('folder:')) return { dataDir: address.slice('folder:'.length) }
  return { database: address }
}
