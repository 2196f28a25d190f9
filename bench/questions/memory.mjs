// How much memory does a worker take, and does it grow? Resident size of its process over a million jobs. Most of it is
// room that Node keeps for young objects, however few are alive; so a worker runs as Node comes, and once more with the
// smaller room that docs/operations/workers.md recommends where memory is short. How large that room may grow differs between versions of Node, so
// it also runs on the one that `npm run bench` was called with, if that is another: no peer takes part here.
import { drain, expectCounts, inArena } from '../harness/arena.mjs'
import { now, sleep } from '../harness/clock.mjs'
import { fillWaiting } from '../harness/fill.mjs'
import { mean } from '../harness/statistics.mjs'
import { noMoreThan } from '../harness/verdict.mjs'

const SAMPLE_MS = 250
const MB = 2 ** 20
const LIMIT_MS = 1_200_000
const caller = JSON.parse(process.env.REDRIVE_BENCH_CALLER ?? '{}')
const CALLER =
  caller.path && caller.version !== process.versions.node
    ? [{ key: 'redrive-caller', label: `redrive, Node ${caller.version}`, node: caller.path }]
    : []
const SETUPS = [
  { key: 'redrive', label: 'redrive' },
  { key: 'redrive-small', label: 'redrive, --max-semi-space-size=4', nodeFlags: ['--max-semi-space-size=4'] },
  ...CALLER,
]

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'memory',
  title: 'Worker memory over 1M jobs, resident MB (a quick run has 100k jobs)',
  rounds: { full: 1, quick: 1 },
  columns: [
    { key: 'maxMb', label: 'max' },
    { key: 'startMb', label: 'start' },
    { key: 'endMb', label: 'end' },
    { key: 'growth', label: 'last quarter / second' },
    { key: 'perSecond', label: 'jobs/s' },
  ],
  entrants: quick =>
    SETUPS.map(({ key, label, ...options }) => ({
      key,
      label,
      measure: servers => inArena(servers, 'redrive', arena => measure(arena, quick ? 100_000 : 1_000_000, options)),
    })),
  verdicts: medians => [
    noMoreThan(`≤ 150 MB resident, Node ${process.versions.node} as it comes`, medians('redrive', 'maxMb'), 150, ' MB'),
    noMoreThan('≤ 150 MB resident, as recommended', medians('redrive-small', 'maxMb'), 150, ' MB'),
    ...CALLER.map(({ key }) =>
      noMoreThan(`≤ 150 MB resident, Node ${caller.version} as it comes`, medians(key, 'maxMb'), 150, ' MB'),
    ),
    noMoreThan('flat: last quarter ≤ 1.1 × the second', medians('redrive', 'growth'), 1.1),
  ],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {number} count
 * @param {Record<string, unknown>} options
 */
async function measure(arena, count, options) {
  await fillWaiting(arena, count)
  const observer = await arena.process()
  const worker = await arena.process(options)
  const startedAt = now()
  const sizes = [(await worker.ask('usage')).rss / MB]
  let running = true
  const sampling = (async () => {
    while (running) {
      await sleep(SAMPLE_MS)
      sizes.push((await worker.ask('usage')).rss / MB)
    }
  })()
  await drain([worker], observer, { count, limitMs: LIMIT_MS })
  const endedAt = now()
  running = false
  await sampling
  await expectCounts(observer, { unfinished: 0, completed: count })
  /** @param {number} from @param {number} to */
  const average = (from, to) => mean(sizes.slice(Math.floor(sizes.length * from), Math.ceil(sizes.length * to))) ?? 0
  return {
    startMb: sizes[0] ?? 0,
    maxMb: Math.max(...sizes),
    endMb: sizes.at(-1) ?? 0,
    growth: average(0.75, 1) / average(0.25, 0.5),
    perSecond: (count / (endedAt - startedAt)) * 1000,
  }
}
