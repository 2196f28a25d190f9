// How fast are waiting jobs worked off? From the call that starts the worker until the last handler has run and
// everything is settled in the database; our finished jobs stay in the history. pg-boss is given its ANALYZE. 20,000 jobs
// last half a second, of which a good part is everyone's warm-up: 100,000 show the pace that is kept.
import { drainRound } from '../harness/drain-round.mjs'
import { EVERYONE, entrants, jobsFor, LONG, LONG_PEERS, PG_BOSS, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 20_000
const MANY = 100_000
const NOT_ANALYZED = { ...PG_BOSS, key: 'pg-boss-raw', label: 'pg-boss (fetch, no ANALYZE)' }

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'drain',
  title: 'Drain: 20,000 waiting jobs of 100 B, no-op handlers, one worker process, until all is settled',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'handledPerSecond', label: 'handlers/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
    { key: 'deadTuplesPerJob', label: 'dead tuples/job' },
  ],
  entrants: quick => [
    ...entrants(EVERYONE, (arena, setup) => drainRound(arena, setup, { count: jobsFor(setup, JOBS) })),
    ...entrants(quick ? [] : [NOT_ANALYZED], (arena, setup) =>
      drainRound(arena, setup, { count: JOBS, analyze: false }),
    ),
    ...entrants(LONG, (arena, setup) => drainRound(arena, setup, { count: MANY })),
  ],
  verdicts: medians => [
    atLeast(
      '≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
      medians('bare', 'perSecond'),
    ),
    atLeast(
      '100,000 jobs: ≥ 2 × the best Postgres peer',
      medians('redrive-long', 'perSecond'),
      best(medians, LONG_PEERS, 'perSecond', 'most'),
      2,
      medians('bare-long', 'perSecond'),
    ),
  ],
}
