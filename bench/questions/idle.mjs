// What does a worker cost that has nothing to do? Transactions (commands on Redis) a second in its database, and the
// share of one CPU its process takes. All of them idle at the same time: they do not disturb one another.
import { Absent, openArena } from '../harness/arena.mjs'
import { sleep } from '../harness/clock.mjs'
import { BULLMQ_POSTGRES, BULLMQ_REDIS, GRAPHILE, PG_BOSS_WORK, REDRIVE } from '../harness/entrants.mjs'

const FIELD = [REDRIVE, GRAPHILE, PG_BOSS_WORK, BULLMQ_POSTGRES, BULLMQ_REDIS]
/** Until everyone has calmed down. */
const CALM_MS = 6_000

/** @type {import('../harness/rounds.mjs').Question} */
export default {
  name: 'idle',
  title: 'An idle worker: queries a second and CPU',
  rounds: { full: 1, quick: 1 },
  columns: [
    { key: 'queriesPerSecond', label: 'queries/s' },
    { key: 'cpuPercent', label: 'CPU % of its process' },
  ],
  async prepare(servers, quick) {
    /** @type {Awaited<ReturnType<typeof idle>>[]} */
    const idlers = []
    for (const setup of FIELD) idlers.push(await idle(servers, setup))
    await sleep(CALM_MS)
    await Promise.all(idlers.map(idler => idler.begin()))
    await sleep(quick ? 5_000 : 30_000)
    return { idlers, close: () => closeAll(idlers) }
  },
  entrants: (_quick, { idlers }) =>
    FIELD.map(({ key, label }, index) => ({ key, label, measure: () => idlers[index].end() })),
  verdicts: () => [],
}

/** @param {Awaited<ReturnType<typeof idle>>[]} idlers */
async function closeAll(idlers) {
  for (const idler of idlers) await idler.close()
}

/** @param {import('../harness/arena.mjs').Servers} servers @param {import('../harness/entrants.mjs').Setup} setup */
async function idle(servers, setup) {
  const { redis } = servers
  const onRedis = setup === BULLMQ_REDIS
  if (onRedis && 'missing' in redis) {
    const { missing } = redis
    return { begin: async () => {}, end: () => Promise.reject(new Absent(missing)), close: async () => {} }
  }
  const { arena, close } = await openArena(servers, setup.contestant)
  const worker = await arena.process(setup.options)
  await worker.ask('work', { handler: 'nothing' })
  const state = async () => ({
    queries: Number(await ('missing' in redis || arena.meter ? arena.meter?.transactions() : redis.commands())),
    ...(await worker.ask('usage')),
  })
  /** @type {Awaited<ReturnType<typeof state>>} */
  let before
  return {
    async begin() {
      before = await state()
    },
    async end() {
      const after = await state()
      const seconds = (after.at - before.at) / 1000
      const cpuMs = (after.cpu.user + after.cpu.system - before.cpu.user - before.cpu.system) / 1000
      // The first of the two counts is itself one query.
      return { queriesPerSecond: (after.queries - before.queries - 1) / seconds, cpuPercent: cpuMs / seconds / 10 }
    },
    close,
  }
}
