// How fast are waiting jobs worked off? From the call that starts the worker until the last handler has run and
// everything is settled in the database; our finished jobs stay in the history. pg-boss is given its ANALYZE.
import { drain, expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, PG_BOSS, POSTGRES_PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 20_000
const NOT_ANALYZED = { ...PG_BOSS, key: 'pg-boss-raw', label: 'pg-boss (fetch, no ANALYZE)', share: 0.1, raw: true }

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'drain',
  title: 'Drain: 20,000 waiting jobs of 100 B, no-op handlers, one worker process, until all is settled',
  rounds: { full: 5, quick: 2 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'handledPerSecond', label: 'handlers/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
    { key: 'deadTuplesPerJob', label: 'dead tuples/job' },
  ],
  entrants: () => entrants([...EVERYONE, NOT_ANALYZED], measure),
  verdicts: medians => [
    atLeast(
      '≥ 2 × the best Postgres peer',
      medians('redrive', 'perSecond'),
      best(medians, POSTGRES_PEERS, 'perSecond', 'most'),
      2,
    ),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena @param {import('../harness/entrants.mjs').Setup & { raw?: true }} setup */
async function measure(arena, setup) {
  const count = jobsFor(setup, JOBS)
  const producer = await arena.process(setup.options)
  const worker = await arena.process(setup.options)
  const walBefore = await arena.meter?.wal()
  await producer.ask('enqueueMany', { count, batch: 1_000 })
  if (!setup.raw) await producer.ask('analyze')
  const { handledMs, settledMs } = await drain([worker], producer, { count })
  const walAfter = await arena.meter?.wal()
  await expectCounts(producer, { unfinished: 0, completed: count })
  await worker.close()
  const deadTuples = await arena.meter?.deadTuples()
  return {
    perSecond: (count / settledMs) * 1000,
    handledPerSecond: (count / handledMs) * 1000,
    ...(walBefore !== undefined && walAfter !== undefined && { walPerJob: (walAfter - walBefore) / count }),
    ...(deadTuples !== undefined && { deadTuplesPerJob: deadTuples / count }),
  }
}
