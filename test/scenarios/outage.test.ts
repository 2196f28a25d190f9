// A service is down for two minutes under load, with three workers. Told twice, with the breaker and without, with time
// by hand: what the outage costs, what becomes of its jobs, and what the rest of the queue notices.
import { expect, test } from 'vitest'
import type { ServiceSettings } from '../../src/domain/breaker.js'
import { sleep } from '../../src/domain/clock.js'
import { TransientError } from '../../src/domain/errors.js'
import { exponential } from '../../src/policy/backoff.js'
import { DEFAULT_BREAKER } from '../../src/policy/service-settings.js'
import { Services } from '../../src/runtime/breaker-sync.js'
import { defineJob } from '../../src/runtime/definition.js'
import { newJob } from '../../src/runtime/producer.js'
import type { Worker } from '../../src/runtime/worker.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { freshDatabase } from '../support/databases.js'
import { move } from '../support/runtime.js'

const WORKERS = 3
/** So many of each sort come in together, every so often. */
const ARRIVING = 5
const EVERY_S = 2
const HEALTHY_S = 4
const OUTAGE_S = 120
const AFTER_S = 10
const STEP_MS = 100

interface Figures {
  /** Calls of the service while it was down. */
  readonly wasted: number
  readonly dead: number
  /** Jobs of the other service that were done when the outage ended, of as many that had come in. */
  readonly othersDone: number
  readonly othersCame: number
  /** The longest that one of them took, from its enqueue. */
  readonly othersLongestMs: number
  /** Calls of the service in the busiest second after it came back. */
  readonly busiest: number
  readonly firstSeconds: readonly number[]
  /** Seconds from the end of the outage until nothing was left. */
  readonly drainedAfterS: number
  readonly done: number
  readonly came: number
}

/** `drained`: goes on until nothing is left. */
async function outage(settings: ServiceSettings, drained: boolean): Promise<Figures> {
  const fresh = await freshDatabase('memory')
  const clock = manualClock(Date.UTC(2031, 4, 1))
  Object.defineProperty(fresh.clock, 'now', { get: () => new Date(clock.now()).toISOString() })
  const random = seededRandom(7)
  const seconds = () => clock.monotonic() / 1_000
  const down = () => seconds() >= HEALTHY_S && seconds() < HEALTHY_S + OUTAGE_S
  const calls: number[] = []
  const done = new Set<number>()
  const others: { n: number; ms: number }[] = []
  let dead = 0
  const upload = defineJob<{ n: number }>({
    name: 'upload',
    queue: 'files',
    service: 's3',
    retry: { attempts: 5, backoff: exponential({ initialMs: 1_000, factor: 3, maxMs: 30_000 }) },
    handler: async ({ n }) => {
      calls.push(seconds())
      await sleep(clock, 50)
      if (down()) throw new TransientError('503 from the bucket')
      done.add(n)
    },
  })
  const log = defineJob<{ n: number; at: number }>({
    name: 'log',
    queue: 'files',
    service: 'logs',
    handler: ({ n, at }) => void others.push({ n, ms: clock.monotonic() - at }),
  })
  const workers: Worker[] = []
  const processes = Array.from({ length: WORKERS }, (_, index) => {
    const process = move(fresh, usual => {
      const parts = { ...usual, clock, random }
      return { clock, random, services: new Services(parts, { s3: settings, logs: settings }) }
    })
    process.on('job.dead', () => {
      dead += 1
    })
    workers.push(process.work([upload, log], { concurrency: 5, name: `w${index}`, pollMs: 500 }))
    return process
  })
  const [first] = processes
  if (!first) throw new Error('no worker')
  let came = 0
  const arrive = async () => {
    const jobs = Array.from({ length: ARRIVING }, () => {
      const payload = { n: came++, at: clock.monotonic() }
      return [newJob(clock, upload, payload, {}), newJob(clock, log, payload, {})]
    })
    await first.runtime.transport.publish(jobs.flat())
  }
  let othersDone = 0
  let othersCame = 0
  let drainedAt = 0
  const end = HEALTHY_S + OUTAGE_S
  const isOver = (second: number) =>
    second >= end + AFTER_S && (!drained || dead + done.size >= came || second >= end + 600)
  for (let second = 0; !isOver(second); second += 1) {
    if (second < end + AFTER_S && second % EVERY_S === 0) await arrive()
    for (let ms = 0; ms < 1_000; ms += STEP_MS) await clock.advance(STEP_MS)
    if (second === end - 1) [othersDone, othersCame] = [others.length, came]
    if (drainedAt === 0 && second >= end && dead + done.size >= came - ARRIVING) drainedAt = second
  }
  const stopping = Promise.all(workers.map(worker => worker.stop({ graceMs: 0 })))
  await clock.advance(20_000)
  await stopping
  const after = calls.filter(at => at >= end)
  const inSecond = (from: number) => after.filter(at => at >= from && at < from + 1).length
  return {
    wasted: calls.filter(at => at >= HEALTHY_S && at < end).length,
    dead,
    othersDone,
    othersCame,
    othersLongestMs: Math.max(...others.map(({ ms }) => ms)),
    busiest: Math.max(...after.map(inSecond)),
    firstSeconds: closingSeconds(after, inSecond),
    drainedAfterS: drainedAt - end,
    done: done.size,
    came,
  }
}

/** The starts of each second from the first call after the outage. */
function closingSeconds(after: readonly number[], inSecond: (from: number) => number): number[] {
  const from = Math.min(...after)
  return Array.from({ length: 12 }, (_, second) => inSecond(from + second))
}

const OFF = { breaker: { enabled: false }, budget: { enabled: false } }

test('pitfall 6: a service is down for two minutes under load, and nothing stampedes when it is back', {
  timeout: 240_000,
}, async () => {
  const without = await outage(OFF, false)
  const held = await outage({}, true)
  const share = held.wasted / without.wasted
  console.log('two minutes of outage, three workers, time by hand:', { without, with: held, share })

  expect(without.wasted).toBeGreaterThan(1_000)
  expect(share, 'of the calls that were wasted').toBeLessThan(0.05)
  expect(held.dead, 'jobs that died of the outage').toBe(0)
  expect(held.done).toBe(held.came)
  // The jobs of the other service are done within a second, whatever happens to this one.
  expect(held.othersDone).toBe(held.othersCame)
  expect(held.othersLongestMs).toBeLessThanOrEqual(1_000)
  // The held come back as the breaker lets them: at most its rate, which doubles, and what is new.
  const { releasePerSecond, releaseDoublingMs } = DEFAULT_BREAKER
  for (const [second, starts] of held.firstSeconds.entries()) {
    const rate = releasePerSecond * 2 ** (((second + 1) * 1_000) / releaseDoublingMs)
    expect(starts, `starts in second ${second} after the first try`).toBeLessThanOrEqual(
      rate + DEFAULT_BREAKER.probes + 1,
    )
  }
  expect(held.drainedAfterS).toBeLessThanOrEqual(120)
})
