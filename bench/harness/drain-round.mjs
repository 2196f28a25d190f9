// One drain of one contestant, as several questions need it: preload, start, wait until all is settled, check.
import { drain, expectCounts } from './arena.mjs'

/**
 * @param {import('./arena.mjs').Arena} arena
 * @param {import('./entrants.mjs').Setup} setup
 * @param {object} load
 * @param {number} load.count
 * @param {number} [load.processes]
 * @param {number} [load.bytes]
 * @param {string} [load.handler]
 * @param {number} [load.concurrency]
 * @param {boolean} [load.analyze] off: the contestant is not given the statistics it likes
 * @param {(arena: import('./arena.mjs').Arena) => Promise<unknown>} [load.beforeDrain]
 * @returns {Promise<import('./entrants.mjs').Figures>}
 */
export async function drainRound(arena, setup, load) {
  const { count, processes = 1, bytes, handler, concurrency, analyze = true, beforeDrain } = load
  const options = { ...setup.options, processes }
  const producer = await arena.process(options)
  const workers = await arena.processes(processes, options)
  const walBefore = await arena.meter?.wal()
  const enqueued = await producer.ask('enqueueMany', { count, batch: 1_000, bytes })
  if (analyze) await producer.ask('analyze')
  await beforeDrain?.(arena)
  const { handledMs, settledMs } = await drain(workers, producer, { handler, concurrency, count })
  const walAfter = await arena.meter?.wal()
  await expectCounts(producer, { unfinished: 0, completed: count })
  await arena.close()
  const deadTuples = await arena.meter?.deadTuples()
  return {
    perSecond: (count / settledMs) * 1000,
    handledPerSecond: (count / handledMs) * 1000,
    enqueuedPerSecond: (count / (enqueued.endedAt - enqueued.startedAt)) * 1000,
    ...(walBefore !== undefined && walAfter !== undefined && { walPerJob: (walAfter - walBefore) / count }),
    ...(deadTuples !== undefined && { deadTuplesPerJob: deadTuples / count }),
  }
}
