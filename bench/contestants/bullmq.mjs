// BullMQ as its guide recommends for throughput: addBulk, concurrency 100; finished and failed jobs are kept. What it
// runs on is the caller's choice.
import { Queue, UnrecoverableError, Worker } from 'bullmq'

/** @param {string} message */
export const permanent = message => new UnrecoverableError(message)

const QUEUE = 'bench'
const OPTIONS = { attempts: 3, backoff: { type: 'fixed', delay: 100 } }

/** @param {Record<string, unknown>} options with the connection @param {unknown[]} backend the last constructor arguments */
export async function openBull(options, backend) {
  const queue = new Queue(QUEUE, { ...options, defaultJobOptions: OPTIONS }, ...backend)
  queue.on('error', error => console.error(`BullMQ: ${error.message}`))
  await queue.waitUntilReady()
  const counts = () => queue.getJobCounts('wait', 'active', 'delayed', 'prioritized', 'completed', 'failed')
  const unfinished = found => found.wait + found.active + found.delayed + found.prioritized
  return {
    enqueueMany: items => queue.addBulk(items.map(({ payload }) => ({ name: 'task', data: payload }))),
    enqueueOne: payload => queue.add('task', payload),
    async work(handler, { concurrency = 100 }) {
      const perform = job => handler(job.data, job.attemptsMade + 1)
      const worker = new Worker(QUEUE, perform, { ...options, concurrency }, ...backend)
      worker.on('error', error => console.error(`BullMQ: ${error.message}`))
      return { stop: () => worker.close() }
    },
    unsettled: async () => unfinished(await counts()),
    async counts() {
      const found = await counts()
      return { unfinished: unfinished(found), completed: found.completed, dead: found.failed }
    },
    redriveAll: () => queue.retryJobs({ count: 1_000 }),
    close: () => queue.close(),
  }
}
