// graphile-worker as its page on performance recommends: 24 jobs at once, a local queue of 500, completions and
// failures in batches, add_jobs for many. It deletes finished jobs; of a failed one it keeps the last error.
import { Logger, makeWorkerUtils, run } from 'graphile-worker'
import pg from 'pg'

export const label = 'graphile-worker'
export const store = 'postgres'

/** It has no such error: jobs that must not be tried again are added with one attempt. @param {string} message */
export const permanent = message => new Error(message)

const logger = new Logger(() => () => {})
const RESCHEDULED_AT_ONCE = 1_000

/** @param {string} connectionString */
export async function prepare(connectionString) {
  const utils = await makeWorkerUtils({ connectionString, logger })
  await utils.migrate()
  await utils.release()
}

/** @param {string} connectionString @param {{ processes?: number }} options */
export async function open(connectionString, { processes = 1 } = {}) {
  const pool = new pg.Pool({ connectionString, max: 2 })
  pool.on('error', () => {})
  const utils = await makeWorkerUtils({ connectionString, logger })
  const count = async where => {
    const { rows } = await pool.query(`SELECT count(*)::int AS count FROM graphile_worker.jobs WHERE ${where}`)
    return rows[0].count
  }
  const unsettled = () => count('attempts < max_attempts OR locked_at IS NOT NULL')
  return {
    enqueueMany: items =>
      utils.addJobs(
        items.map(({ payload, once }) => ({ identifier: 'task', payload, ...(once && { maxAttempts: 1 }) })),
      ),
    enqueueOne: payload => utils.addJob('task', payload),
    async work(handler, { concurrency = 24 }) {
      const runner = await run({
        taskList: { task: (payload, { job }) => handler(payload, job.attempts) },
        preset: {
          worker: {
            connectionString,
            concurrentJobs: concurrency,
            // One for each job and one more, as recommended, as long as all fit into the server's hundred.
            maxPoolSize: processes > 1 ? 15 : 25,
            localQueue: { size: 500 },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
            logger,
          },
        },
        noHandleSignals: true,
        crontab: '',
      })
      runner.promise.catch(() => {})
      return { stop: () => runner.stop() }
    },
    unsettled,
    async counts() {
      return { unfinished: await unsettled(), completed: null, dead: await count('attempts >= max_attempts') }
    },
    /** It has no zero for `attempts`: more of them are allowed instead. */
    async redriveAll() {
      const { rows } = await pool.query(
        'SELECT id FROM graphile_worker.jobs WHERE attempts >= max_attempts ORDER BY id',
      )
      const ids = rows.map(({ id }) => id)
      for (let start = 0; start < ids.length; start += RESCHEDULED_AT_ONCE) {
        await utils.rescheduleJobs(ids.slice(start, start + RESCHEDULED_AT_ONCE), {
          runAt: new Date(),
          maxAttempts: 25,
        })
      }
    },
    async close() {
      await utils.release()
      await pool.end()
    },
  }
}
