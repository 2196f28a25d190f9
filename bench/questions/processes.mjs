// Do the results hold with four worker processes?
import { drainRound } from '../harness/drain-round.mjs'
import { EVERYONE, entrants, jobsFor, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const PROCESSES = 4

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'processes',
  title: 'Drain with 4 worker processes: 40,000 jobs of 100 B (a quick run has 20,000)',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
    { key: 'deadTuplesPerJob', label: 'dead tuples/job' },
  ],
  entrants: quick =>
    entrants(EVERYONE, (arena, setup) =>
      drainRound(arena, setup, { count: jobsFor(setup, quick ? 20_000 : 40_000), processes: PROCESSES }),
    ),
  verdicts: medians => [
    atLeast(
      '4 processes: ≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
      medians('bare', 'perSecond'),
    ),
  ],
}
