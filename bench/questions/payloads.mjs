// Do the results hold with payloads of 10 KB? (100 B is what the other questions use.)
import { drainRound } from '../harness/drain-round.mjs'
import { EVERYONE, entrants, jobsFor, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const BYTES = 10_240

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'payloads',
  title: 'Payloads of 10 KB: 10,000 jobs enqueued in batches of 1000 and drained (a quick run has 5,000)',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'drained/s' },
    { key: 'enqueuedPerSecond', label: 'enqueued/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
  ],
  entrants: quick =>
    entrants(EVERYONE, (arena, setup) =>
      drainRound(arena, setup, { count: jobsFor(setup, quick ? 5_000 : 10_000), bytes: BYTES }),
    ),
  verdicts: medians =>
    [
      { column: 'enqueuedPerSecond', what: 'enqueue' },
      { column: 'perSecond', what: 'drain' },
    ].map(({ column, what }) =>
      atLeast(
        `10 KB, ${what}: ≥ 2 × the best Postgres peer`,
        medians('redrive', column),
        best(medians, POSTGRES_PEERS, column, 'most'),
        2,
        medians('bare', column),
      ),
    ),
}
