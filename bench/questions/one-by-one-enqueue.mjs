// How fast does one producer put jobs in line one after the other, each durable before the next?
import { expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, PG_BOSS_WORK, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const WARM_UP = 50

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'one-by-one-enqueue',
  title: 'Enqueue one by one: jobs of 100 B, one producer, one after the other',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
  ],
  entrants: quick =>
    entrants(
      EVERYONE.filter(setup => setup !== PG_BOSS_WORK),
      arena => measure(arena, quick ? 300 : 2_000),
    ),
  verdicts: medians => [
    atLeast(
      '≥ 1.5 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      1.5,
      medians('bare', 'perSecond'),
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena @param {number} count */
async function measure(arena, count) {
  const producer = await arena.process()
  await producer.ask('enqueueOneByOne', { count: WARM_UP })
  const walBefore = await arena.meter?.wal()
  const { startedAt, endedAt } = await producer.ask('enqueueOneByOne', { count })
  const walAfter = await arena.meter?.wal()
  await expectCounts(producer, { unfinished: count + WARM_UP })
  return {
    perSecond: (count / (endedAt - startedAt)) * 1000,
    ...(walBefore !== undefined && walAfter !== undefined && { walPerJob: (walAfter - walBefore) / count }),
  }
}
