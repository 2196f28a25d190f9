// How fast do dead jobs come back? The call that sends all of them back to run, until they wait in line. As they died a moment
// ago, nobody has analyzed their table; pg-boss's own redrive is shown once more with an ANALYZE before it, which is what it needs
// most: the design's target compares with it as it comes.
import { expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, PG_BOSS, PG_BOSS_WORK } from '../harness/entrants.mjs'
import { atLeast } from '../harness/verdict.mjs'
import { die } from './dead-letters.mjs'

const JOBS = 20_000
const BY_ID = { ...PG_BOSS, key: 'pg-boss-retry', label: 'pg-boss (retry by id)', options: { redriveBy: 'retry' } }
const BY_REDRIVE = { ...PG_BOSS, label: 'pg-boss (redrive)' }
const ANALYZED = { ...PG_BOSS, key: 'pg-boss-analyzed', label: 'pg-boss (redrive, after ANALYZE)' }

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'redrive',
  title: 'Redrive: 20,000 dead jobs sent back to run',
  rounds: { full: 3, quick: 1 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  entrants: () =>
    entrants(
      [...EVERYONE.filter(({ contestant }) => contestant !== PG_BOSS.contestant), BY_REDRIVE, ANALYZED, BY_ID],
      measure,
    ),
  verdicts: medians => [
    atLeast(
      '≥ 40 × pg-boss as it comes',
      medians('redrive', 'perSecond'),
      { label: BY_REDRIVE.label, value: medians(PG_BOSS.key, 'perSecond') },
      40,
      medians('bare', 'perSecond'),
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena @param {import('../harness/entrants.mjs').Setup} setup */
async function measure(arena, setup) {
  const count = jobsFor(setup, JOBS)
  // pg-boss dies faster by `work`, and how they died does not matter here.
  const dying = setup.contestant === PG_BOSS.contestant ? { ...setup, ...PG_BOSS_WORK } : setup
  await die(arena, dying, count)
  const operator = await arena.process(setup.options)
  if (setup.key === ANALYZED.key) await operator.ask('analyze')
  const { startedAt, endedAt } = await operator.ask('redriveAll')
  await expectCounts(operator, { unfinished: count })
  return { perSecond: (count / (endedAt - startedAt)) * 1000 }
}
