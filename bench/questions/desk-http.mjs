// The person on call looks at a million dead letters over HTTP: the list by every filter, far into it, one letter, the
// statistics, groups and reasons. The real API answers on a port; its own time is measured from the request's arrival to
// the answer that is ready to leave, and the database's is what it reports for the statements of the call (EXPLAIN ANALYZE).
// The API shares counts among all who ask within some seconds. Here its clock leaps before every request, so that each answer
// is found out anew: the target is for whoever asks first. What the others wait for is shown beside it, without a target.

import { systemClock } from '../../dist/domain/clock.js'
import { createHttp, serve } from '../../dist/http/index.js'
import { openRedrive } from '../../dist/index.js'
import { openArena } from '../harness/arena.mjs'
import { now } from '../harness/clock.mjs'
import { fillCauses, fillDead } from '../harness/fill.mjs'
import { RecordingPool } from '../harness/recording-pool.mjs'
import { percentile } from '../harness/statistics.mjs'
import { noMoreThan } from '../harness/verdict.mjs'

const REPEATS = 40
const FEWEST_REPEATS = 20
const LONGEST_MS = 2_000
const LIMIT_MS = 50

const SECRET = 'a-secret-of-the-bench'
const HOUR = 3_600_000

/** `:id`, `:day` and `:cursor` are of what was filled in. A list of 50 each. */
const LISTS = {
  'no filter': '',
  queue: 'queue=queue-3',
  'rare queue': 'queue=rare',
  'unknown queue': 'queue=nobody',
  kind: 'kind=network',
  service: 'service=service-4',
  'rare service': 'service=rare',
  'status pending': 'status=pending',
  'status redriving (none)': 'status=redriving',
  group: 'group=v1:77',
  'rare group': 'group=v1:rare',
  assignedTo: 'assignedTo=person-10',
  'rare assignedTo': 'assignedTo=rare',
  'since an hour ago': 'since=:hour',
  'until the middle': 'until=:middle',
  'q in many': 'q=charged',
  'q in one': 'q=needle',
  'q in none': 'q=no+such+text',
  'queue, kind and status': 'queue=queue-3&kind=network&status=pending',
  'rare queue and q': 'queue=rare&q=charged',
  'cursor in the middle': 'cursor=:cursor',
  'cursor in the middle of a queue': 'queue=queue-3&cursor=:cursor',
  'offset 10,000': 'offset=10000',
  'offset 10,000 of a queue': 'queue=queue-3&offset=10000',
  'offset 10,000 of a q': 'q=charged&offset=10000',
  'limit 200': 'limit=200',
}

const CALLS = [
  ...Object.entries(LISTS).map(([label, query]) => ({ label: `list: ${label}`, path: `/dead-letter-queue?${query}` })),
  { label: 'one dead letter', path: '/dead-letter-queue/:id' },
  { label: 'statistics', path: '/statistics' },
  { label: 'queues', path: '/queues' },
  { label: 'groups', path: '/groups' },
  { label: 'groups, by failures', path: '/groups?sort=failures' },
  { label: 'groups of a queue', path: '/groups?queue=queue-3' },
  { label: 'one group', path: '/groups/v1:77' },
  { label: 'failure reasons', path: '/failure-reasons' },
  { label: 'failure reasons of 30 days', path: '/failure-reasons?since=:month&limit=50' },
  { label: 'jobs', path: '/jobs' },
  { label: 'dead jobs of a queue', path: '/jobs?state=dead&queue=rare' },
]

const SHARED = [
  { label: 'shared: statistics', path: '/statistics', shared: true },
  { label: 'shared: failure reasons', path: '/failure-reasons', shared: true },
]
/** Longer than anything is shared. */
const LEAP_MS = 60_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'desk-http',
  title: 'The desk over HTTP at 1M dead letters, ms (a quick run has 200k)',
  rounds: { full: 1, quick: 1 },
  columns: [
    { key: 'handlerP95', label: 'p95 of the API' },
    { key: 'handlerP50', label: 'p50' },
    { key: 'databaseP95', label: 'p95 in the database' },
    { key: 'databaseP50', label: 'p50' },
  ],
  async prepare(servers, quick) {
    const { arena, close } = await openArena(servers, 'redrive')
    const count = quick ? 200_000 : 1_000_000
    await fillDead(arena, count)
    await fillCauses(arena)
    const pool = new RecordingPool({ connectionString: arena.address, max: 10 })
    const redrive = await openRedrive({ database: pool })
    await redrive.operator.groups.list()
    const desk = await openDesk(redrive)
    return {
      pool,
      desk,
      names: await namesIn(desk, count),
      async close() {
        await desk.close()
        await redrive.close()
        await pool.end()
        await close()
      },
    }
  },
  entrants: (_quick, shared) =>
    [...CALLS, ...SHARED].map(call => ({
      key: call.label,
      label: call.label,
      measure: async () => measure(call, shared),
    })),
  verdicts: medians => {
    const worst = CALLS.map(({ label }) => ({
      label,
      ms: medians(label, 'handlerP95') ?? Number.POSITIVE_INFINITY,
    })).sort((a, b) => b.ms - a.ms)[0]
    return [
      noMoreThan(
        `any call, found out anew: p95 ≤ ${LIMIT_MS} ms in the API (${worst?.label})`,
        worst?.ms,
        LIMIT_MS,
        ' ms',
      ),
    ]
  },
}

/**
 * The API on a port, with a note of how long it took over each answer.
 * @param {import('../../dist/index.js').Redrive} redrive
 */
async function openDesk(redrive) {
  let leaptMs = 0
  const clock = { ...systemClock, monotonic: () => systemClock.monotonic() + leaptMs }
  const api = createHttp(redrive, { tokens: `bench:read:${SECRET}`, clock })
  let tookMs = 0
  /** @type {typeof api.fetch} */
  const fetchTimed = async (request, env) => {
    const startedAt = now()
    const response = await api.fetch(request, env)
    tookMs = now() - startedAt
    return response
  }
  const served = await serve({ ...api, fetch: fetchTimed }, { port: 0 })
  return {
    /** @param {string} path @returns {Promise<any>} */
    async get(path) {
      const response = await fetch(`${served.url}/api/queue-admin${path}`, {
        headers: { authorization: `Bearer ${SECRET}` },
      })
      const body = await response.json()
      if (!response.ok) throw new Error(`${path}: ${response.status} ${body.detail}`)
      return body
    },
    tookMs: () => tookMs,
    leap: () => {
      leaptMs += LEAP_MS
    },
    close: () => served.close(),
  }
}

/** @param {Awaited<ReturnType<typeof openDesk>>} desk @param {number} count one died each second */
async function namesIn(desk, count) {
  const ago = (/** @type {number} */ ms) => encodeURIComponent(new Date(Date.now() - ms).toISOString())
  const middle = ago((count / 2) * 1_000)
  const { items, nextCursor } = await desk.get(`/dead-letter-queue?until=${middle}`)
  return { id: items[0].id, cursor: nextCursor, middle, hour: ago(HOUR), month: ago(720 * HOUR) }
}

/**
 * @param {{ path: string, shared?: boolean }} call
 * @param {{ pool: RecordingPool, desk: Awaited<ReturnType<typeof openDesk>>, names: Record<string, string> }} shared
 */
async function measure({ path, shared = false }, { pool, desk, names }) {
  const asked = path.replace(/:(id|cursor|middle|hour|month)\b/g, (_, name) => names[name] ?? '')
  const handler = []
  const database = []
  const givenUpAt = now() + LONGEST_MS
  for (let i = 0; i < REPEATS && (i < FEWEST_REPEATS || now() < givenUpAt); i += 1) {
    if (!shared) desk.leap()
    const { statements } = await pool.record(() => desk.get(asked), { mayAskNothing: shared })
    handler.push(desk.tookMs())
    database.push(await pool.databaseMs(statements))
  }
  const of = (/** @type {number[]} */ values, /** @type {number} */ share) => percentile(values, share) ?? 0
  return {
    handlerP50: of(handler, 0.5),
    handlerP95: of(handler, 0.95),
    databaseP50: of(database, 0.5),
    databaseP95: of(database, 0.95),
  }
}
