// What does one job cost at each step of its life? Counted, not timed: commits, rows and index entries written (from the
// WAL itself, where Postgres 15 or newer can be asked), WAL bytes, and the CPU time of Postgres' processes and of ours.
import { drain, openArena, untilSettled } from '../harness/arena.mjs'
import { sleep } from '../harness/clock.mjs'
import { Ledger } from '../harness/ledger.mjs'
import { untilHandled } from '../harness/process.mjs'

const STEPS = {
  enqueue: 'enqueue, batches of 1000',
  success: 'claim and success',
  'enqueue-one': 'enqueue, one by one',
  'success-one': 'claim and success, one by one',
  retry: 'claim, failure, wait for a retry',
  death: 'claim, failure, dead letter',
  redrive: 'redrive',
}
const LIMIT_MS = 60_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'cost',
  title: 'What a job costs at each step (100 B payload, no-op handlers, one worker)',
  rounds: { full: 1, quick: 1 },
  columns: [
    { key: 'commits', label: 'commits/job' },
    { key: 'inserts', label: 'rows inserted' },
    { key: 'updates', label: 'updated' },
    { key: 'deletes', label: 'deleted' },
    { key: 'locks', label: 'locked' },
    { key: 'indexEntries', label: 'index entries' },
    { key: 'wal', label: 'WAL B/job' },
    { key: 'postgresUs', label: 'Postgres µs' },
    { key: 'nodeUs', label: 'Node µs' },
  ],
  async prepare(servers, quick) {
    const { arena, close } = await openArena(servers, 'redrive')
    const ledger = await Ledger.open(arena)
    try {
      return { figures: await live(arena, ledger, quick ? 10_000 : 50_000), close }
    } catch (error) {
      await close()
      throw error
    }
  },
  entrants: (_quick, { figures }) =>
    Object.entries(STEPS).map(([key, label]) => ({ key, label, measure: async () => figures[key] })),
  verdicts: () => [],
}

/**
 * @param {import('../harness/arena.mjs').Arena} arena
 * @param {Ledger} ledger
 * @param {number} count
 */
async function live(arena, ledger, count) {
  const few = Math.round(count / 20)
  const producer = await arena.process({ usualPolicy: true })
  const worker = await arena.process({ usualPolicy: true })
  const processes = [producer, worker]
  /** @type {Record<string, import('../harness/entrants.mjs').Figures>} */
  const figures = {}
  /** @param {string} step @param {number} jobs @param {() => Promise<unknown>} act */
  const measured = async (step, jobs, act) => {
    figures[step] = await ledger.cost(processes, jobs, act)
  }
  const enqueue = () => producer.ask('enqueueMany', { count, batch: 1_000 })
  // Once for nothing: code and caches are cold only once in a process's life.
  await enqueue()
  await drain([worker], producer, { count })
  await worker.ask('stop')

  await measured('enqueue', count, enqueue)
  await measured('success', count, () => drain([worker], producer, { count: 2 * count }))
  await worker.ask('stop')

  await measured('enqueue-one', few, () => producer.ask('enqueueOneByOne', { count: few }))
  await measured('success-one', few, () => drain([worker], producer, { count: 2 * count + few, concurrency: 1 }))
  await worker.ask('stop')

  await enqueue()
  await measured('retry', count, async () => {
    await worker.ask('work', { handler: 'fail' })
    await untilHandled([worker], 3 * count + few, LIMIT_MS)
    while ((await ledger.active()) > 0) await sleep(1)
  })
  await worker.ask('stop')
  await ledger.forgetLive()

  await enqueue()
  await measured('death', count, async () => {
    await worker.ask('work', { handler: 'die' })
    await untilHandled([worker], 4 * count + few, LIMIT_MS)
    await untilSettled(producer)
  })
  await worker.ask('stop')
  await measured('redrive', count, () => producer.ask('redriveAll'))
  return figures
}
