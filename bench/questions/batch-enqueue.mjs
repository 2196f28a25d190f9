// How fast does one producer put jobs in line, a thousand at a time? One batch before, so that nobody is measured
// connecting.
import { expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, PG_BOSS_WORK, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 50_000
const BATCH = 1_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'batch-enqueue',
  title: 'Enqueue in batches of 1000: 50,000 jobs of 100 B, one producer',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
  ],
  entrants: () =>
    entrants(
      EVERYONE.filter(setup => setup !== PG_BOSS_WORK),
      measure,
    ),
  verdicts: medians => [
    atLeast(
      '≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
      medians('bare', 'perSecond'),
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena @param {import('../harness/entrants.mjs').Setup} setup */
async function measure(arena, setup) {
  const count = jobsFor(setup, JOBS)
  const producer = await arena.process(setup.options)
  await producer.ask('enqueueMany', { count: BATCH, batch: BATCH })
  const walBefore = await arena.meter?.wal()
  const { startedAt, endedAt } = await producer.ask('enqueueMany', { from: BATCH, count, batch: BATCH })
  const walAfter = await arena.meter?.wal()
  await expectCounts(producer, { unfinished: count + BATCH })
  return {
    perSecond: (count / (endedAt - startedAt)) * 1000,
    ...(walBefore !== undefined && walAfter !== undefined && { walPerJob: (walAfter - walBefore) / count }),
  }
}
