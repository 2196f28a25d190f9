// A load as it is in life: live producers, one job in ten fails once and succeeds after a short wait, one in a hundred
// dies. graphile-worker's wait cannot be set (2.7 s the first time), so the rate that counts is that of the busy time,
// in which nobody waits for the last retries: until nine tenths of all attempts had run. 20,000 jobs of one producer last half a second, of
// which a good part is everyone's warm-up and the rest its waiting for each batch; 100,000 of four show the pace that is kept.
import { drain, expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, LONG, LONG_PEERS, PEERS } from '../harness/entrants.mjs'
import { dies, failsOnce } from '../harness/jobs.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 20_000
const MANY = 100_000
const PRODUCERS = 4
const BATCH = 100
const PRELOADED = 0.1

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'mixed',
  title: 'Mixed load in batches of 100, 10% fail once, 1% die: 20,000 jobs from one live producer, 100,000 from four',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'busyPerSecond', label: 'attempts/s while busy' },
    { key: 'perSecond', label: 'jobs/s to the last end' },
  ],
  entrants: () => [
    ...entrants(EVERYONE, (arena, setup) => measure(arena, setup, { jobs: jobsFor(setup, JOBS), producers: 1 })),
    ...entrants(LONG, (arena, setup) => measure(arena, setup, { jobs: MANY, producers: PRODUCERS })),
  ],
  verdicts: medians => [
    atLeast(
      '≥ 2 × the best peer, while busy',
      medians('redrive', 'busyPerSecond'),
      best(medians, PEERS, 'busyPerSecond', 'most'),
      2,
      medians('bare', 'busyPerSecond'),
    ),
    atLeast(
      '100,000 jobs, four producers: ≥ 2 × the best peer, while busy',
      medians('redrive-long', 'busyPerSecond'),
      best(medians, LONG_PEERS, 'busyPerSecond', 'most'),
      2,
      medians('bare-long', 'busyPerSecond'),
    ),
  ],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {import('../harness/entrants.mjs').Setup} setup
 * @param {{ jobs: number, producers: number }} load
 */
async function measure(arena, setup, load) {
  const { jobs } = load
  const numbers = Array.from({ length: jobs }, (_, i) => i)
  const attempts = jobs + numbers.filter(failsOnce).length
  const dead = numbers.filter(dies).length
  const preloaded = jobs * PRELOADED
  const producers = await arena.processes(load.producers, setup.options)
  const observer = await arena.process(setup.options)
  const worker = await arena.process(setup.options)
  const [first] = producers
  await first?.ask('enqueueMany', { count: preloaded, batch: 1_000, once: 'dying' })
  await first?.ask('analyze')
  const share = (jobs - preloaded) / producers.length
  const producing = producers.map((producer, index) =>
    producer.ask('enqueueMany', { from: preloaded + index * share, count: share, batch: BATCH, once: 'dying' }),
  )
  const draining = drain([worker], observer, { handler: 'mixed', count: attempts })
  const [{ startedAt, settledMs }] = await Promise.all([draining, ...producing])
  await expectCounts(observer, { unfinished: 0, completed: jobs - dead, dead })
  const busyMs = (await worker.ask('reachedAt', { count: attempts * 0.9 })) - startedAt
  return { busyPerSecond: ((attempts * 0.9) / busyMs) * 1000, perSecond: (jobs / settledMs) * 1000 }
}
