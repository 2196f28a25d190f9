// A long reader holds back xmin, so that no dead row can be removed while jobs are worked off (pitfall 11). The design
// names no figure for "must not collapse"; we ask what it asks of a backlog.
import { drainRound } from '../harness/drain-round.mjs'
import { entrants, GRAPHILE, PG_BOSS, REDRIVE } from '../harness/entrants.mjs'
import { atLeast } from '../harness/verdict.mjs'

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'held-xmin',
  title: 'Held xmin: a drain of 60,000 jobs with and without a long REPEATABLE READ transaction',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'handledPerSecond', label: 'handlers/s' },
  ],
  entrants: quick => {
    const field = quick ? [REDRIVE] : [REDRIVE, GRAPHILE, PG_BOSS]
    const count = quick ? 30_000 : 60_000
    const held = field.map(setup => ({ ...setup, key: `${setup.key}-held`, label: `${setup.label}, xmin held` }))
    return [
      ...entrants(field, (arena, setup) => drainRound(arena, setup, { count })),
      ...entrants(held, (arena, setup) => drainRound(arena, setup, { count, beforeDrain: hold })),
    ]
  },
  verdicts: medians => [
    atLeast(
      'held: ≥ 0.8 × free',
      medians('redrive-held', 'perSecond'),
      { label: 'free', value: medians('redrive', 'perSecond') },
      0.8,
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena */
async function hold(arena) {
  await arena.meter?.client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await arena.meter?.client.query('SELECT count(*) FROM pg_class')
}
