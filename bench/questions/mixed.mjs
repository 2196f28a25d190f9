// A load as it is in life: a live producer, one job in ten fails once and succeeds after a short wait, one in a hundred
// dies. graphile-worker's wait cannot be set (2.7 s the first time), so the rate that counts is that of the busy time,
// in which nobody waits for the last retries: until nine tenths of all attempts had run.
import { drain, expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, PEERS } from '../harness/entrants.mjs'
import { dies, failsOnce } from '../harness/jobs.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 20_000
const BATCH = 100
const PRELOADED = 0.1

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'mixed',
  title: 'Mixed load: 20,000 jobs from a live producer in batches of 100, 10% fail once, 1% die',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'busyPerSecond', label: 'attempts/s while busy' },
    { key: 'perSecond', label: 'jobs/s to the last end' },
  ],
  entrants: () => entrants(EVERYONE, measure),
  verdicts: medians => [
    atLeast(
      '≥ 2 × the best peer, while busy',
      medians('redrive', 'busyPerSecond'),
      best(medians, PEERS, 'busyPerSecond', 'most'),
      2,
      medians('bare', 'busyPerSecond'),
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena @param {import('../harness/entrants.mjs').Setup} setup */
async function measure(arena, setup) {
  const jobs = jobsFor(setup, JOBS)
  const numbers = Array.from({ length: jobs }, (_, i) => i)
  const attempts = jobs + numbers.filter(failsOnce).length
  const dead = numbers.filter(dies).length
  const preloaded = jobs * PRELOADED
  const producer = await arena.process(setup.options)
  const observer = await arena.process(setup.options)
  const worker = await arena.process(setup.options)
  await producer.ask('enqueueMany', { count: preloaded, batch: 1_000, once: 'dying' })
  await producer.ask('analyze')
  const producing = producer.ask('enqueueMany', {
    from: preloaded,
    count: jobs - preloaded,
    batch: BATCH,
    once: 'dying',
  })
  const draining = drain([worker], observer, { handler: 'mixed', count: attempts })
  const [, { startedAt, settledMs }] = await Promise.all([producing, draining])
  await expectCounts(observer, { unfinished: 0, completed: jobs - dead, dead })
  const busyMs = (await worker.ask('reachedAt', { count: attempts * 0.9 })) - startedAt
  return { busyPerSecond: ((attempts * 0.9) / busyMs) * 1000, perSecond: (jobs / settledMs) * 1000 }
}
