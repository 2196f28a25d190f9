// A worker is killed with -9 in the middle of its jobs. How long until they run again on another, and does anything else
// run twice? Everything as it is by default: the lease is 15 s.
import { expectCounts, inArena } from '../harness/arena.mjs'
import { now, sleep } from '../harness/clock.mjs'
import { HANGS_FROM } from '../harness/jobs.mjs'
import { untilHandled } from '../harness/process.mjs'
import { noMoreThan } from '../harness/verdict.mjs'

const LEASE_S = 15
const FINISHED = 20
const LOST = 10
const OTHERS = 1_000
const OTHERS_RUNNING = 5
const LIMIT_MS = 90_000
/** Long enough for anything that wrongly runs again to do so. */
const AFTER_MS = 3_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'kill',
  title: 'A worker killed with -9: seconds until its 10 jobs have run again on another',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'seconds', label: 's' },
    { key: 'wrongRuns', label: 'other jobs run twice' },
  ],
  entrants: () => [{ key: 'redrive', label: 'redrive', measure: servers => inArena(servers, 'redrive', measure) }],
  verdicts: medians => [
    noMoreThan('≤ the lease (15 s) + 2 s', medians('redrive', 'seconds'), LEASE_S + 2, ' s'),
    noMoreThan('only its unfinished jobs repeat', medians('redrive', 'wrongRuns'), 0),
  ],
}

/** @param {import('../harness/arena.mjs').Arena} arena */
async function measure(arena) {
  const options = { usualPolicy: true }
  const producer = await arena.process(options)
  const victim = await arena.process(options)
  await victim.ask('work', { handler: 'hang', concurrency: LOST })
  // One by one: a worker that is used to fast jobs claims ahead, and would take what the other is to run.
  for (let i = 0; i < FINISHED; i += 1) {
    await producer.ask('ping', { i })
    await untilHandled([victim], i + 1, LIMIT_MS)
  }
  await producer.ask('enqueueMany', { from: HANGS_FROM, count: LOST, batch: LOST })
  await untilStarted(victim, FINISHED + LOST)
  const heir = await arena.process(options)
  await heir.ask('work', { handler: 'hang' })
  await producer.ask('enqueueMany', { count: OTHERS, batch: OTHERS })
  await untilHandled([heir], OTHERS, LIMIT_MS)
  await producer.ask('enqueueMany', { from: HANGS_FROM, count: OTHERS_RUNNING, batch: OTHERS_RUNNING })
  await untilStarted(heir, OTHERS + OTHERS_RUNNING)
  const killedAt = now()
  victim.kill()
  const ranAgainAt = await untilHandled([heir], OTHERS + LOST, LIMIT_MS)
  await sleep(AFTER_MS)
  await expectCounts(producer, { unfinished: OTHERS_RUNNING, completed: FINISHED + OTHERS + LOST, dead: 0 })
  const started = await heir.ask('started')
  heir.kill() // its own jobs would keep it from stopping
  return { seconds: (ranAgainAt - killedAt) / 1000, wrongRuns: started - OTHERS - OTHERS_RUNNING - LOST }
}

/** @param {import('../harness/process.mjs').ContestantProcess} worker @param {number} count */
async function untilStarted(worker, count) {
  const givenUpAt = now() + LIMIT_MS
  while ((await worker.ask('started')) < count) {
    if (now() > givenUpAt) throw new Error(`the worker did not start its ${count} jobs`)
    await sleep(20)
  }
}
