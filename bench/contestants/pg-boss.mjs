// pg-boss in its two ways: `fetch` in batches of 500 with `complete` for the whole batch, and `work` with the largest
// useful batch, the shortest polling, LISTEN/NOTIFY and bursts. Workers share the batch sizes.
import { PgBoss } from 'pg-boss'

export const label = 'pg-boss'
export const store = 'postgres'

/** @param {string} message */
export const permanent = message => Object.assign(new Error(message), { permanent: true })

const QUEUE = 'bench'
const DEAD = 'bench-dead'
const BATCH = 500
const FETCH_LOOPS = 2
const EMPTY_PAUSE_MS = 50

const settings = connectionString => ({ connectionString, useListenNotify: true, schedule: false })

/** @param {string} connectionString */
export async function prepare(connectionString) {
  const boss = await start(connectionString)
  await boss.createQueue(DEAD)
  await boss.createQueue(QUEUE, { notify: true, deadLetter: DEAD, retryLimit: 2, retryDelay: 0 })
  await boss.stop({ graceful: false })
}

async function start(connectionString) {
  const boss = new PgBoss(settings(connectionString))
  boss.on('error', error => console.error(`pg-boss: ${error.message}`))
  await boss.start()
  return boss
}

/** @param {string} connectionString @param {{ mode?: 'fetch' | 'work', redriveBy?: 'redrive' | 'retry' }} options */
export async function open(connectionString, { mode = 'fetch', redriveBy = 'redrive' } = {}) {
  const boss = await start(connectionString)
  const db = boss.getDb()
  const count = async (queue, where) => {
    const { rows } = await db.executeSql(`SELECT count(*)::int AS count FROM pgboss.job WHERE name = $1 AND ${where}`, [
      queue,
    ])
    return rows[0].count
  }
  const unsettled = () => count(QUEUE, `state < 'completed'`)
  const retryFailed = async () => {
    const { rows } = await db.executeSql(`SELECT id FROM pgboss.job WHERE name = $1 AND state = 'failed'`, [QUEUE])
    const ids = rows.map(({ id }) => id)
    for (let start = 0; start < ids.length; start += BATCH) await boss.retry(QUEUE, ids.slice(start, start + BATCH))
  }
  return {
    enqueueMany: items =>
      boss.insert(
        QUEUE,
        items.map(({ payload, once }) => ({ data: payload, ...(once && { retryLimit: 0 }) })),
      ),
    enqueueOne: payload => boss.send(QUEUE, payload),
    work: (handler, { concurrency }) =>
      mode === 'work' ? workInBatches(boss, handler, concurrency) : fetchInLoops(boss, handler, concurrency),
    unsettled,
    async counts() {
      const completed = await count(QUEUE, `state = 'completed'`)
      return { unfinished: await unsettled(), completed, dead: await count(DEAD, `state < 'active'`) }
    },
    /** Without statistics its fetch is planned badly. */
    analyze: () => db.executeSql('ANALYZE'),
    async redriveAll() {
      if (redriveBy === 'retry') return retryFailed()
      while ((await boss.redrive(DEAD)) > 0);
    },
    close: () => boss.stop({ graceful: false, close: true }),
  }
}

/** @returns {Promise<{ ended: string[], failed: string[], error?: unknown }>} */
async function perform(jobs, handler) {
  const ended = []
  const failed = []
  let error
  await Promise.all(
    jobs.map(job =>
      handler(job.data, (job.retryCount ?? 0) + 1).then(
        () => ended.push(job.id),
        reason => {
          failed.push(job.id)
          error = reason
        },
      ),
    ),
  )
  return { ended, failed, error }
}

/** Failures of a batch are written with one of their errors: `fail` takes one for all. */
function fetchInLoops(boss, handler, concurrency) {
  let stopped = false
  const loops = concurrency === undefined ? FETCH_LOOPS : Math.min(4, concurrency)
  const batchSize = concurrency === undefined ? BATCH : Math.ceil(concurrency / loops)
  const loop = async () => {
    while (!stopped) {
      const jobs = await boss.fetch(QUEUE, { batchSize })
      if (jobs.length === 0) {
        await new Promise(resolve => setTimeout(resolve, EMPTY_PAUSE_MS))
        continue
      }
      const { ended, failed, error } = await perform(jobs, handler)
      if (ended.length > 0) await boss.complete(QUEUE, ended)
      if (failed.length > 0) await boss.fail(QUEUE, failed, { message: error.message, stack: error.stack })
    }
  }
  const loopsDone = Promise.all(Array.from({ length: loops }, loop))
  loopsDone.catch(error => console.error(`pg-boss: ${error.message}`))
  return {
    async stop() {
      stopped = true
      await loopsDone
    },
  }
}

async function workInBatches(boss, handler, concurrency) {
  const localConcurrency = 2
  const batchSize = concurrency === undefined ? BATCH : Math.ceil(concurrency / localConcurrency)
  const options = {
    batchSize,
    localConcurrency,
    pollingIntervalSeconds: 0.5,
    burstWhenBatchFull: true,
    perJobResults: true,
  }
  await boss.work(QUEUE, options, async jobs => {
    const { ended, failed, error } = await perform(jobs, handler)
    const output = error && { message: error.message, stack: error.stack }
    return [...ended.map(id => ({ id, status: 'completed' })), ...failed.map(id => ({ id, status: 'failed', output }))]
  })
  return { stop: () => boss.offWork(QUEUE, { wait: false }) }
}
