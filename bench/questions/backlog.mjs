// Does it get slower the more there is? The same 10,000 jobs are run: out of 10,000 and out of a million that wait, and
// beside a million that are retrying or dead.
import { inArena } from '../harness/arena.mjs'
import { fillDead, fillRetrying, fillWaiting } from '../harness/fill.mjs'
import { untilHandled } from '../harness/process.mjs'
import { atLeast } from '../harness/verdict.mjs'

const JOBS = 10_000
const REPEATS = 3
const LIMIT_MS = 120_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'backlog',
  title: 'Backlog: handlers run per second, 10,000 jobs at a time (a quick run has 200k instead of 1M)',
  rounds: { full: 3, quick: 1 },
  columns: [{ key: 'perSecond', label: 'jobs/s' }],
  entrants: quick => {
    const many = quick ? 200_000 : 1_000_000
    const shown = quick ? '200k' : '1M'
    return [
      entrant('small', '10k waiting', async () => {}),
      entrant('waiting', `${shown} waiting`, arena => fillWaiting(arena, many)),
      entrant('retrying', `10k waiting, ${shown} retrying`, arena => fillRetrying(arena, many)),
      entrant('dead', `10k waiting, ${shown} dead`, arena => fillDead(arena, many)),
    ]
  },
  verdicts: medians =>
    ['waiting', 'retrying', 'dead'].map(what =>
      atLeast(
        `many ${what}: ≥ 0.8 × the small end`,
        medians(what, 'perSecond'),
        { label: '10k waiting', value: medians('small', 'perSecond') },
        0.8,
      ),
    ),
}

/**
 * @param {string} key
 * @param {string} label
 * @param {(arena: import('../harness/arena.mjs').Arena) => Promise<void>} fill
 * @returns {import('../harness/entrants.mjs').Entrant}
 */
const entrant = (key, label, fill) => ({
  key,
  label,
  measure: servers =>
    inArena(servers, 'redrive', async arena => {
      await fill(arena)
      const producer = await arena.process()
      let totalMs = 0
      for (let repeat = 0; repeat < REPEATS; repeat += 1) {
        await producer.ask('enqueueMany', { count: JOBS, batch: 1_000 })
        const worker = await arena.process()
        const { startedAt } = await worker.ask('work', { handler: 'nothing' })
        await untilHandled([worker], JOBS, LIMIT_MS)
        totalMs += (await worker.ask('reachedAt', { count: JOBS })) - startedAt
        await worker.close()
      }
      return { perSecond: ((JOBS * REPEATS) / totalMs) * 1000 }
    }),
})
