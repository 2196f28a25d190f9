// Redis carries the jobs, and everything breaks once: connections are cut, Redis is killed and started again, workers are
// killed, the ledger goes silent. A Redis of our own that writes every change to disk before it answers.
//
// What was acknowledged is done or dead at the end, and nothing is left. A job runs again only where its worker was killed
// or its handler threw: an entry of a stream stays in its holder's name when a connection breaks.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { PRIORITIES } from '../../src/transport/transports/redis-streams.js'
import { administer, freshDatabase } from '../support/databases.js'
import { openProxy } from '../support/proxy.js'
import { isInstalled, type PrivateRedis, privateRedis } from '../support/redis.js'
import { until } from '../support/until.js'
import { repeats } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import type { Payloads } from './support/jobs.js'
import { Producer } from './support/producer.js'

const PROGRAM = 'redis-server'
const PREFIX = 'chaos:'
const LONG_MS = 120_000
/** Long enough that a slow machine is not taken for a dead worker. */
const CLAIM_AFTER_MS = 8_000

let server: PrivateRedis | undefined
beforeAll(async () => {
  if (isInstalled(PROGRAM)) server = await privateRedis(PROGRAM)
})
afterAll(() => server?.stop())

const ENDS = ['complete', 'complete', 'complete', 'flaky', 'complete', 'die'] as const
const batch = (): Payloads['work'][] =>
  Array.from({ length: 48 }, (_, n) => ({ ms: n % 20, end: ENDS[n % 6] ?? 'die' }))

test('everything breaks once while Redis carries the jobs', async context => {
  if (!server) return context.skip(`needs ${PROGRAM}: it is not installed here`)
  const { url: database = '' } = await freshDatabase('server', { migrated: false })
  const [toRedis, toLedger] = await Promise.all([openProxy(server.url), openProxy(database)])
  onTestFinished(() => Promise.all([toRedis.close(), toLedger.close()]).then(() => {}))
  const carried = { prefix: PREFIX, claimAfterMs: CLAIM_AFTER_MS }
  const producer = await Producer.open(database, { redis: { ...carried, url: server.url, timeoutMs: 2_000 } })
  const settings = { database: toLedger.url, concurrency: 8, leaseMs: 5_000, pollMs: 200 }
  const fleet = new Fleet({ ...settings, redis: { ...carried, url: toRedis.url } })
  const [first, second] = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  const feed = producer.feed(fleet, batch)

  for (let cuts = 0; cuts < 3; cuts += 1) {
    await fleet.hears(150)
    toRedis.cut()
  }
  // An acknowledgement is said again when its answer was lost.
  await fleet.hears(100)
  toRedis.swallowAnswers(3)
  await fleet.hears(100)
  await server.kill()
  await server.start()
  await fleet.hears(150)
  await Promise.all([fleet.kill(first), fleet.kill(second)])
  await Promise.all([fleet.start(), fleet.hears(150)])

  // Without the ledger, what succeeds goes on; what fails waits for it.
  toLedger.freeze()
  const finishedBefore = fleet.of('finished').length
  await fleet.until('jobs succeed without the ledger', () => fleet.of('finished').length > finishedBefore + 50)
  toLedger.cut()

  await server.kill()
  await server.start()
  await fleet.hears(150)
  await feed.stop()

  const raw = new Redis(server.url)
  onTestFinished(() => raw.disconnect())
  const inRedis = async () => {
    const lengths = await Promise.all(PRIORITIES.map(priority => raw.xlen(`${PREFIX}chaos:${priority}`)))
    return lengths.reduce((sum, length) => sum + length, 0)
  }
  const nothingIsLeft = async () => (await inRedis()) === 0 && (await liveJobs(database)) === 0
  await until('nothing is left in Redis or in the ledger', nothingIsLeft, LONG_MS)

  const { entries } = await booksAt(database)
  const inLedger = new Map(entries.map(entry => [entry.id, entry.state]))
  const finished = new Set(fleet.of('finished').map(({ id }) => id))
  const lost = [...producer.acknowledged].filter(id =>
    producer.expected.get(id) === 'dead' ? inLedger.get(id) !== 'dead' : !finished.has(id) && !inLedger.has(id),
  )
  expect(lost, 'acknowledged, and neither done nor dead').toEqual([])
  const buried = entries.filter(({ id, state }) => state === 'dead' && producer.expected.get(id) === 'completed')
  expect(buried, 'dead although they should have been done').toEqual([])
  expect([...repeats(fleet)]).toEqual([])
}, 180_000)

const ENTRIES = 3_000
const INBOX = fileURLToPath(new URL('./support/inbox-process.ts', import.meta.url))

test('processes that empty a list are killed again and again: every entry is one job', async context => {
  if (!server) return context.skip(`needs ${PROGRAM}: it is not installed here`)
  const { url: database = '' } = await freshDatabase('server')
  const raw = new Redis(server.url)
  onTestFinished(() => raw.disconnect())
  const list = 'chaos_list'
  const config = JSON.stringify({ database, redis: server.url, list, claimAfterMs: 2_000 })
  const children = new Set<ChildProcess>()
  const start = () => {
    const child = spawn(process.execPath, ['--import', 'tsx', INBOX, config], { stdio: ['pipe', 'ignore', 'inherit'] })
    children.add(child)
    return child
  }
  const kill = async (child: ChildProcess) => {
    const gone = once(child, 'exit')
    child.kill('SIGKILL')
    await gone
    children.delete(child)
  }
  onTestFinished(() => Promise.all([...children].map(kill)).then(() => {}))
  const jobs = async () => {
    const rows = await administer(database, "SELECT payload->>'n' AS n FROM redrive.job")
    return (rows as { n: string }[]).map(({ n }) => Number(n))
  }

  start()
  for (let round = 0; round < 3; round += 1) {
    const child = start()
    const before = (await jobs()).length
    const some = Array.from({ length: ENTRIES / 3 }, (_, n) => JSON.stringify({ n: round * (ENTRIES / 3) + n }))
    await raw.rpush(list, ...some)
    await until('some of them are jobs', async () => (await jobs()).length > before, LONG_MS)
    const [oldest] = children
    await kill(round % 2 ? child : (oldest ?? child))
  }
  if (children.size === 0) start()
  await until('all of them are jobs', async () => (await jobs()).length >= ENTRIES, LONG_MS)
  const isEmpty = async () => {
    const kept = await raw.keys(`redrive:inbox:${list}:*:*`)
    return (await raw.llen(list)) === 0 && kept.length === 0
  }
  await until('nothing is left in Redis', isEmpty, LONG_MS)
  expect((await jobs()).toSorted((a, b) => a - b)).toEqual(Array.from({ length: ENTRIES }, (_, n) => n))
}, 180_000)
