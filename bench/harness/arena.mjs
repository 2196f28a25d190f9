// Where one contestant runs one round: a database of its own that is prepared before and dropped after, and its
// processes.
import { now, sleep } from './clock.mjs'
import { Meter } from './meter.mjs'
import { ContestantProcess, untilHandled } from './process.mjs'

const LIMIT_MS = 180_000

/**
 * @typedef {object} Servers
 * @property {import('./postgres.mjs').PostgresServer} postgres
 * @property {import('./redis.mjs').RedisServer | { missing: string }} redis
 */

/** A contestant cannot take part here; the reason is printed, and it is no failure. */
export class Absent extends Error {}

/**
 * @param {Servers} servers
 * @param {string} name of the contestant
 */
export async function openArena(servers, name) {
  const contestant = await import(`../contestants/${name}.mjs`)
  const { postgres, redis } = servers
  const onRedis = contestant.store === 'redis'
  if (onRedis && 'missing' in redis) throw new Absent(redis.missing)
  const address = await (onRedis && !('missing' in redis) ? redis.create() : postgres.create())
  const meter = onRedis ? undefined : await Meter.open(address)
  const arena = new Arena(name, address, meter)
  const close = async () => {
    await arena.close()
    await meter?.close()
    if (!onRedis) await postgres.drop(address)
  }
  try {
    await contestant.prepare(address)
  } catch (error) {
    await close()
    throw error
  }
  return { arena, close }
}

/**
 * @template T
 * @param {Servers} servers
 * @param {string} name of the contestant
 * @param {(arena: Arena) => Promise<T>} round
 * @returns {Promise<T>}
 */
export async function inArena(servers, name, round) {
  const { arena, close } = await openArena(servers, name)
  try {
    return await round(arena)
  } finally {
    await close()
  }
}

export class Arena {
  /** @type {ContestantProcess[]} */
  #processes = []

  /** @param {string} contestant @param {string} address @param {Meter | undefined} meter */
  constructor(contestant, address, meter) {
    this.contestant = contestant
    this.address = address
    this.meter = meter
  }

  /** Another process of the contestant, connected. @param {Record<string, unknown>} [options] */
  async process(options = {}) {
    const started = new ContestantProcess(this.contestant, this.address, options)
    this.#processes.push(started)
    await started.ready
    return started
  }

  /** @param {number} count @param {Record<string, unknown>} [options] */
  processes(count, options) {
    return Promise.all(Array.from({ length: count }, () => this.process(options)))
  }

  async close() {
    await Promise.all(this.#processes.splice(0).map(started => started.close()))
  }
}

/**
 * Lets the workers run and waits until `count` handlers have run and nothing is left to be settled.
 * @param {readonly ContestantProcess[]} workers
 * @param {ContestantProcess} observer asked what is left, so that the workers are not disturbed
 * @param {{ handler?: string | undefined, concurrency?: number | undefined, count: number, limitMs?: number }} options
 */
export async function drain(workers, observer, { handler = 'nothing', concurrency, count, limitMs = LIMIT_MS }) {
  await observer.ask('unsettled') // so that nobody is measured connecting to be asked
  const started = await Promise.all(workers.map(worker => worker.ask('work', { handler, concurrency })))
  const startedAt = Math.min(...started.map(answer => answer.startedAt))
  const handledAt = await untilHandled(workers, count, limitMs)
  const settledAt = await untilSettled(observer)
  return { startedAt, handledAt, settledAt, handledMs: handledAt - startedAt, settledMs: settledAt - startedAt }
}

/** @param {ContestantProcess} observer @returns {Promise<number>} when nothing was left */
export async function untilSettled(observer) {
  const givenUpAt = now() + LIMIT_MS
  for (;;) {
    const left = await observer.ask('unsettled')
    if (left === 0) return now()
    if (now() > givenUpAt) throw new Error(`${left} jobs were still not settled after ${LIMIT_MS / 1000} s`)
    await sleep(1)
  }
}

/**
 * Every contestant must really have done its work.
 * @param {ContestantProcess} observer
 * @param {{ unfinished: number, completed?: number, dead?: number }} expected what the contestant does not keep
 *   (`null`) is not compared
 */
export async function expectCounts(observer, expected) {
  const counts = await observer.ask('counts')
  for (const [what, value] of Object.entries(expected)) {
    if (counts[what] !== null && counts[what] !== value) {
      throw new Error(`expected ${value} ${what}, found ${counts[what]}`)
    }
  }
}
