// How fast without any server? PGlite inside the one process that enqueues and works; our Postgres likewise.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Arena, drain, expectCounts, inArena } from '../harness/arena.mjs'
import { atLeast, noLessThan } from '../harness/verdict.mjs'

const JOBS = 20_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'embedded',
  title: 'Embedded: 20,000 jobs enqueued and worked off in one process',
  rounds: { full: 3, quick: 1 },
  columns: [
    { key: 'perSecond', label: 'jobs/s' },
    { key: 'enqueuedPerSecond', label: 'enqueued/s' },
  ],
  entrants: () => [
    { key: 'memory', label: 'PGlite in memory', measure: () => inProcess('memory:') },
    { key: 'disk', label: 'PGlite on disk', measure: onDisk },
    { key: 'server', label: 'Postgres', measure: servers => inArena(servers, 'redrive', measure) },
  ],
  verdicts: medians =>
    ['memory', 'disk'].flatMap(where => [
      noLessThan(`${where}: ≥ 20k jobs/s`, medians(where, 'perSecond'), 20_000),
      atLeast(
        `${where}: ≥ 0.5 × our own Postgres`,
        medians(where, 'perSecond'),
        { label: 'Postgres', value: medians('server', 'perSecond') },
        0.5,
      ),
    ]),
}

async function onDisk() {
  const folder = await mkdtemp(join(tmpdir(), 'redrive-bench-pglite-'))
  try {
    return await inProcess(`folder:${folder}`)
  } finally {
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 })
  }
}

/** @param {string} address */
async function inProcess(address) {
  const arena = new Arena('redrive', address, undefined)
  try {
    return await measure(arena)
  } finally {
    await arena.close()
  }
}

/** @param {Arena} arena */
async function measure(arena) {
  const only = await arena.process()
  const enqueued = await only.ask('enqueueMany', { count: JOBS, batch: 1_000 })
  const { settledMs } = await drain([only], only, { count: JOBS })
  await expectCounts(only, { unfinished: 0, completed: JOBS })
  return {
    perSecond: (JOBS / settledMs) * 1000,
    enqueuedPerSecond: (JOBS / (enqueued.endedAt - enqueued.startedAt)) * 1000,
  }
}
