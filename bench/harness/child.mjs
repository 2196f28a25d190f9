// One process of a contestant: a producer, a worker, or both. It does what its parent asks and tells how many jobs its
// handlers have run.
import { now } from './clock.mjs'
import { dies, handlers, payload } from './jobs.mjs'

const [contestantName, address, optionsText] = process.argv.slice(2)
const contestant = await import(`../contestants/${contestantName}.mjs`)
const REPORT_MS = 5

const client = await contestant.open(address, JSON.parse(optionsText ?? '{}'))

const ran = { started: 0, count: 0, at: 0 }
/** When each hundredth handler had run. @type {number[]} */
const marks = []
const MARK_EVERY = 100
let latencies = []
/** @type {{ stop(): Promise<void> } | undefined} */
let worker
let reporting = false

function report() {
  reporting = false
  process.send?.({ handled: ran.count, at: ran.at })
}

/** @param {import('./jobs.mjs').Handler} handler @returns {import('./jobs.mjs').Handler} */
const counted = handler => async (jobPayload, attempt) => {
  ran.started += 1
  try {
    await handler(jobPayload, attempt)
  } finally {
    ran.count += 1
    ran.at = now()
    if (ran.count % MARK_EVERY === 0) marks.push(ran.at)
    if (!reporting) {
      reporting = true
      setTimeout(report, REPORT_MS)
    }
  }
}

const commands = {
  /** @param {{ from?: number, count: number, batch: number, bytes?: number, once?: string }} asked */
  async enqueueMany({ from = 0, count, batch, bytes, once = 'never' }) {
    const isOnce = { never: () => false, always: () => true, dying: dies }[once] ?? (() => false)
    const items = Array.from({ length: count }, (_, index) => ({
      payload: payload(from + index, bytes),
      once: isOnce(from + index),
    }))
    const startedAt = now()
    for (let start = 0; start < count; start += batch) await client.enqueueMany(items.slice(start, start + batch))
    return { startedAt, endedAt: now() }
  },
  /** One after the other, each durable before the next. @param {{ count: number }} asked */
  async enqueueOneByOne({ count }) {
    const startedAt = now()
    for (let i = 0; i < count; i += 1) await client.enqueueOne(payload(i))
    return { startedAt, endedAt: now() }
  },
  /** Its start of life is now. @param {{ i: number }} asked */
  async ping({ i }) {
    await client.enqueueOne({ ...payload(i), at: now() })
  },
  /** @param {{ handler: string, concurrency?: number }} asked */
  async work({ handler, concurrency }) {
    const chosen = handlers(contestant.permanent, ms => latencies.push(ms))[handler]
    if (!chosen) throw new Error(`There is no handler "${handler}"`)
    const startedAt = now()
    worker = await client.work(counted(chosen), { concurrency })
    return { startedAt }
  },
  async stop() {
    await worker?.stop()
    worker = undefined
  },
  unsettled: () => client.unsettled(),
  counts: () => client.counts(),
  analyze: () => client.analyze?.(),
  async redriveAll() {
    const startedAt = now()
    await client.redriveAll()
    return { startedAt, endedAt: now() }
  },
  async takeLatencies() {
    const taken = latencies
    latencies = []
    return taken
  },
  started: async () => ran.started,
  /** When so many had run, to the hundred. @param {{ count: number }} asked */
  reachedAt: async ({ count }) => marks[Math.floor(count / MARK_EVERY) - 1],
  usage: async () => ({ at: now(), rss: process.memoryUsage.rss(), cpu: process.cpuUsage() }),
  async close() {
    await worker?.stop()
    await client.close()
  },
}

process.on('message', async (/** @type {{ id: number, command: keyof typeof commands, asked: never }} */ message) => {
  const { id, command, asked } = message
  try {
    process.send?.({ id, answer: await commands[command](asked) })
  } catch (error) {
    process.send?.({ id, error: error instanceof Error ? (error.stack ?? error.message) : String(error) })
  }
  if (command === 'close') process.disconnect()
})
process.on('disconnect', () => process.exit())
process.send?.({ ready: true })
