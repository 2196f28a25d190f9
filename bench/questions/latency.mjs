// How soon does a job start on an idle worker? From the enqueue call in one process to the handler in another. One
// Redrive polls only once a minute: its figures must be the same, or latency would depend on polling.
import { sleep } from '../harness/clock.mjs'
import {
  BARE,
  BULLMQ_POSTGRES,
  BULLMQ_REDIS,
  entrants,
  GRAPHILE,
  PG_BOSS_WORK,
  POSTGRES_PEERS,
  REDRIVE,
} from '../harness/entrants.mjs'
import { untilHandled } from '../harness/process.mjs'
import { percentile } from '../harness/statistics.mjs'
import { atMost, best } from '../harness/verdict.mjs'

const WARM_UP = 20
const HARDLY_POLLING = {
  ...REDRIVE,
  key: 'redrive-60s',
  label: 'redrive, polling once a minute',
  options: { pollMs: 60_000 },
}
const HANDING_OVER = { ...BARE, options: { handsOver: true } }

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'latency',
  title: 'Start latency on an idle queue, ms, between two processes',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'p50', label: 'p50 ms' },
    { key: 'p99', label: 'p99 ms' },
    { key: 'max', label: 'max ms' },
  ],
  entrants: quick =>
    entrants(
      [REDRIVE, HARDLY_POLLING, HANDING_OVER, GRAPHILE, PG_BOSS_WORK, BULLMQ_POSTGRES, BULLMQ_REDIS],
      (arena, setup) => measure(arena, setup, quick ? 60 : 300),
    ),
  verdicts: medians => [
    ...['p50', 'p99'].map(column =>
      atMost(
        `${column} ≤ 0.5 × the best Postgres peer`,
        medians('redrive', column),
        best(medians, POSTGRES_PEERS, column, 'least'),
        0.5,
        medians('bare', column),
      ),
    ),
    atMost(
      'p50 ≤ 1.5 × BullMQ on Redis',
      medians('redrive', 'p50'),
      { label: BULLMQ_REDIS.label, value: medians(BULLMQ_REDIS.key, 'p50') },
      1.5,
      medians('bare', 'p50'),
    ),
    atMost(
      'polling once a minute: p50 ≤ 1.2 × with the default',
      medians('redrive-60s', 'p50'),
      { label: 'redrive', value: medians('redrive', 'p50') },
      1.2,
    ),
  ],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {import('../harness/entrants.mjs').Setup} setup
 * @param {number} pings
 */
async function measure(arena, setup, pings) {
  const producer = await arena.process(setup.options)
  const worker = await arena.process(setup.options)
  await worker.ask('work', { handler: 'ping' })
  await sleep(1_000)
  for (let i = 1; i <= WARM_UP + pings; i += 1) {
    await producer.ask('ping', { i })
    await untilHandled([worker], i, 30_000)
    if (i === WARM_UP) await worker.ask('takeLatencies')
    await sleep(20 + Math.random() * 40)
  }
  const latencies = await worker.ask('takeLatencies')
  if (latencies.length !== pings) throw new Error(`${latencies.length} of ${pings} pings came back`)
  return { p50: percentile(latencies, 0.5) ?? 0, p99: percentile(latencies, 0.99) ?? 0, max: Math.max(...latencies) }
}
