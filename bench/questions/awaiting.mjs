// Do the results hold with handlers that await 5 ms, a hundred at once? Nobody can do more than 20,000 a second, so being
// near that is as good as being twice as fast as someone.
import { drainRound } from '../harness/drain-round.mjs'
import { entrants, jobsFor, PEERS, POSTGRES_PEERS, REDRIVE } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const CONCURRENCY = 100
const CEILING = (CONCURRENCY / 5) * 1000
const NEAR = 0.8

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'awaiting',
  title:
    'Handlers that await 5 ms, concurrency 100 (the ceiling is 20,000/s): 20,000 jobs of 100 B, 10,000 in a quick run',
  rounds: { full: 3, quick: 1 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  entrants: quick =>
    entrants([REDRIVE, ...PEERS], (arena, setup) =>
      drainRound(arena, setup, {
        count: jobsFor(setup, quick ? 10_000 : 20_000),
        handler: 'await5ms',
        concurrency: CONCURRENCY,
      }),
    ),
  verdicts: medians => {
    const ours = medians('redrive', 'perSecond')
    const peer = best(medians, POSTGRES_PEERS, 'perSecond', 'most')
    const verdict = atLeast('≥ 2 × the best Postgres peer, or 0.8 × the ceiling', ours, peer, 2)
    const near = ours !== undefined && ours >= NEAR * CEILING
    return [{ ...verdict, passed: near || verdict.passed }]
  },
}
