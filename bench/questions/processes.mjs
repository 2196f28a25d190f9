// Do the results hold with four worker processes? 40,000 jobs last half a second, in which four processes start, compile and
// connect: 100,000 show the pace that is kept.
import { drainRound } from '../harness/drain-round.mjs'
import { EVERYONE, entrants, jobsFor, LONG, LONG_PEERS, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const PROCESSES = 4
const MANY = 100_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'processes',
  title: 'Drain with 4 worker processes: 40,000 jobs of 100 B (a quick run has 20,000), and 100,000',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
    { key: 'deadTuplesPerJob', label: 'dead tuples/job' },
  ],
  entrants: quick => [
    ...entrants(EVERYONE, (arena, setup) =>
      drainRound(arena, setup, { count: jobsFor(setup, quick ? 20_000 : 40_000), processes: PROCESSES }),
    ),
    ...entrants(LONG, (arena, setup) => drainRound(arena, setup, { count: MANY, processes: PROCESSES })),
  ],
  verdicts: medians => [
    atLeast(
      '4 processes: ≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
      medians('bare', 'perSecond'),
    ),
    atLeast(
      '4 processes, 100,000 jobs: ≥ 2 × the best Postgres peer',
      medians('redrive-long', 'perSecond'),
      best(medians, LONG_PEERS, 'perSecond', 'most'),
      2,
      medians('bare-long', 'perSecond'),
    ),
  ],
}
