// The person on call looks at a million dead letters: a page of 50 by every filter, and the statistics. Times are those
// that the database itself reports for the statements of the call (EXPLAIN ANALYZE, planning included). A page looks at
// 5,000 letters at most and is short if too few of them match; so a search is also followed to its end, which has no target.
import { openRedrive } from '../../dist/index.js'
import { openArena } from '../harness/arena.mjs'
import { now } from '../harness/clock.mjs'
import { fillDead } from '../harness/fill.mjs'
import { RecordingPool } from '../harness/recording-pool.mjs'
import { percentile } from '../harness/statistics.mjs'
import { noMoreThan } from '../harness/verdict.mjs'

const REPEATS = 20
const FEWEST_REPEATS = 3
const LONGEST_MS = 1_000

const HOUR = 3_600_000
/** @type {Record<string, object>} */
const FILTERS = {
  'no filter': {},
  queue: { queue: 'queue-3' },
  'rare queue': { queue: 'rare' },
  'unknown queue': { queue: 'nobody' },
  name: { name: 'task-7' },
  kind: { kind: 'network' },
  service: { service: 'service-4' },
  'rare service': { service: 'rare' },
  'status pending': { status: 'pending' },
  'status redriving (none)': { status: 'redriving' },
  group: { fingerprint: 'v1:77' },
  'rare group': { fingerprint: 'v1:rare' },
  assignee: { assignedTo: 'person-10' },
  'rare assignee': { assignedTo: 'rare' },
  'last hour': { since: new Date(Date.now() - HOUR) },
  'before 5 days ago': { until: new Date(Date.now() - 120 * HOUR) },
  'text in many': { text: 'charged' },
  'text in one': { text: 'needle' },
  'text in none': { text: 'no such text' },
  'queue, kind and status': { queue: 'queue-3', kind: 'network', status: 'pending' },
  'rare queue and text': { queue: 'rare', text: 'charged' },
}
const PAGE = { limit: 50 }

const CALLS = [
  ...Object.entries(FILTERS).map(([label, filter]) => ({
    key: label,
    label: `page: ${label}`,
    call: (/** @type {import('../../dist/index.js').Operator} */ operator) => operator.deadLetters.list(filter, PAGE),
  })),
  {
    key: 'offset',
    label: 'page: offset 10,000',
    call: (/** @type {import('../../dist/index.js').Operator} */ operator) =>
      operator.deadLetters.list({}, { ...PAGE, offset: 10_000 }),
  },
]
const STATISTICS = [
  {
    key: 'queues.statistics',
    label: 'queues.statistics',
    call: (/** @type {import('../../dist/index.js').Operator} */ operator) => operator.queues.statistics(),
  },
  {
    key: 'deadLetters.statistics',
    label: 'deadLetters.statistics',
    call: (/** @type {import('../../dist/index.js').Operator} */ operator) => operator.deadLetters.statistics(),
  },
]

const SEARCHES = [
  {
    key: 'followed',
    label: 'every page: text in one',
    /** @param {import('../../dist/index.js').Operator} operator */
    async call(operator) {
      for (let cursor; ; ) {
        const page = await operator.deadLetters.list(FILTERS['text in one'], { ...PAGE, ...(cursor && { cursor }) })
        if (page.nextCursor === undefined) return
        cursor = page.nextCursor
      }
    },
  },
]

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'desk',
  title: 'The desk at 1M dead letters, ms (a quick run has 200k)',
  rounds: { full: 1, quick: 1 },
  columns: [
    { key: 'databaseMs', label: 'p95 in the database' },
    { key: 'wallMs', label: 'p95 of the call' },
  ],
  async prepare(servers, quick) {
    const { arena, close } = await openArena(servers, 'redrive')
    await fillDead(arena, quick ? 200_000 : 1_000_000)
    const pool = new RecordingPool({ connectionString: arena.address, max: 4 })
    const redrive = await openRedrive({ database: pool })
    return {
      pool,
      redrive,
      async close() {
        await redrive.close()
        await pool.end()
        await close()
      },
    }
  },
  entrants: (_quick, { pool, redrive }) =>
    [...CALLS, ...SEARCHES, ...STATISTICS].map(({ key, label, call }) => ({
      key,
      label,
      measure: async () => measure(pool, () => call(redrive.operator)),
    })),
  verdicts: medians => {
    const worst = (/** @type {typeof CALLS} */ calls) =>
      Math.max(...calls.map(({ key }) => medians(key, 'databaseMs') ?? Number.POSITIVE_INFINITY))
    return [
      noMoreThan('page of 50, any filter: p95 ≤ 20 ms in the database', worst(CALLS), 20, ' ms'),
      noMoreThan('statistics ≤ 100 ms in the database', worst(/** @type {any} */ (STATISTICS)), 100, ' ms'),
    ]
  },
}

/** @param {RecordingPool} pool @param {() => Promise<unknown>} call */
async function measure(pool, call) {
  const database = []
  const wall = []
  const givenUpAt = now() + LONGEST_MS
  for (let i = 0; i < REPEATS && (i < FEWEST_REPEATS || now() < givenUpAt); i += 1) {
    const startedAt = now()
    const { statements } = await pool.record(call)
    wall.push(now() - startedAt)
    database.push(await pool.databaseMs(statements))
  }
  return { databaseMs: percentile(database, 0.95) ?? 0, wallMs: percentile(wall, 0.95) ?? 0 }
}
