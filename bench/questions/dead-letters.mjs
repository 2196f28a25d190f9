// What does failing cost? Every job dies at its first attempt, with a stack. Redrive keeps the attempt, the stack, the
// dead letter and its group; the peers keep the last error.
import { drain, expectCounts } from '../harness/arena.mjs'
import { EVERYONE, entrants, jobsFor, PEERS } from '../harness/entrants.mjs'
import { atLeast, best } from '../harness/verdict.mjs'

const JOBS = 20_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'dead-letters',
  title: 'Dead-letter path: 20,000 jobs that all die at the first attempt',
  rounds: { full: 5, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'walPerJob', label: 'WAL B/job' },
  ],
  entrants: () => entrants(EVERYONE, (arena, setup) => die(arena, setup, jobsFor(setup, JOBS))),
  verdicts: medians => [
    atLeast(
      '≥ 1 × the best peer, which keeps only the last error',
      medians('redrive', 'perSecond'),
      best(medians, PEERS, 'perSecond', 'most'),
      1,
      medians('bare', 'perSecond'),
    ),
  ],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {import('../harness/entrants.mjs').Setup} setup
 * @param {number} count
 */
export async function die(arena, setup, count) {
  const producer = await arena.process(setup.options)
  const worker = await arena.process(setup.options)
  const walBefore = await arena.meter?.wal()
  await producer.ask('enqueueMany', { count, batch: 1_000, once: 'always' })
  await producer.ask('analyze')
  const { settledMs } = await drain([worker], producer, { handler: 'die', count })
  const walAfter = await arena.meter?.wal()
  await expectCounts(producer, { unfinished: 0, completed: 0, dead: count })
  await worker.close()
  await producer.close()
  return {
    perSecond: (count / settledMs) * 1000,
    ...(walBefore !== undefined && walAfter !== undefined && { walPerJob: (walAfter - walBefore) / count }),
  }
}
