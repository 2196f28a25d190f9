// What do a breaker and a retry budget cost while nothing fails, and a rate limit that is not reached? The same drain, by
// jobs that name no service, by jobs that do (everything by default), and by jobs with a limit: nothing is held. A few
// per cent are asked about, so the drains are many, in turn, and in one process that has warmed up: two processes of the
// very same program differ by more than that.
import { defineJob, openRedrive } from '../../dist/index.js'
import { now } from '../harness/clock.mjs'
import { atLeast } from '../harness/verdict.mjs'

const JOBS = 100_000
const BATCH = 1_000
const CONCURRENCY = 100

const CONTAINED = { service: 'idle' }
const LIMITED = { rateLimit: { limit: 1_000_000, intervalMs: 1_000, burst: 1_000_000 } }

let warm = false

/** @param {any} servers @param {object} options */
async function measure(servers, options) {
  if (!warm) for (const other of [{}, CONTAINED, LIMITED]) await drain(servers, other)
  warm = true
  return drain(servers, options)
}

/** @param {any} servers @param {object} options */
async function drain({ postgres }, options) {
  const database = await postgres.create()
  const redrive = await openRedrive({ database })
  try {
    const task = defineJob({ name: 'task', queue: 'bench', ...options, handler: () => {} })
    const items = Array.from({ length: BATCH }, (_, number) => ({ payload: { number } }))
    for (let sent = 0; sent < JOBS; sent += BATCH) await redrive.enqueueMany(task, items)
    let left = JOBS
    let done = () => {}
    const all = new Promise(resolve => {
      done = () => resolve(undefined)
    })
    redrive.on('job.completed', () => {
      left -= 1
      if (left === 0) done()
    })
    const startedAt = now()
    const worker = redrive.work([task], { concurrency: CONCURRENCY })
    await all
    const endedAt = now()
    await worker.stop()
    return { perSecond: (JOBS / (endedAt - startedAt)) * 1000 }
  } finally {
    await redrive.close()
    await postgres.drop(database)
  }
}

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'containment',
  title:
    'Containment: drains of 100,000 jobs with breaker and budget, or a rate limit, configured and idle, and without',
  rounds: { full: 11, quick: 3 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  entrants: () => [
    { key: 'redrive', label: 'redrive', measure: servers => measure(servers, {}) },
    { key: 'contained', label: 'with a breaker and a budget', measure: servers => measure(servers, CONTAINED) },
    { key: 'limited', label: 'with a rate limit', measure: servers => measure(servers, LIMITED) },
  ],
  verdicts: medians =>
    [
      ['contained', 'with a breaker and a budget'],
      ['limited', 'with a rate limit'],
    ].map(([key, label]) =>
      atLeast(
        `${label}: ≥ 0.95 × without`,
        medians(key, 'perSecond'),
        { label: 'without', value: medians('redrive', 'perSecond') },
        0.95,
      ),
    ),
}
