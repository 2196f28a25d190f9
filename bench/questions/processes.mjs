// Do the results hold with four worker processes?
import { drainRound } from '../harness/drain-round.mjs'
import { EVERYONE, entrants, jobsFor, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const PROCESSES = 4
const JOBS = 40_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'processes',
  title: 'Drain with 4 worker processes: 40,000 jobs of 100 B',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
    { key: 'deadTuplesPerJob', label: 'dead tuples/job' },
  ],
  entrants: () =>
    entrants(EVERYONE, (arena, setup) =>
      drainRound(arena, setup, { count: jobsFor(setup, JOBS), processes: PROCESSES }),
    ),
  verdicts: medians => [
    atLeast(
      '4 processes: ≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
    ),
  ],
}
