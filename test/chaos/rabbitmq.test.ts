// RabbitMQ carries the jobs, and everything breaks once: connections are cut, also in the middle of acknowledgements, the
// node is restarted, workers are killed, the ledger goes away and comes back. A RabbitMQ node of our own.
//
// What was acknowledged is done or dead at the end, and nothing is left. A job runs again only where its worker was killed,
// its handler threw, or its worker could not tell the ledger in time that it still had it.
import amqp from 'amqplib'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { findRabbitmqServer, startTemporaryRabbitmq } from '../../scripts/rabbitmq.mjs'
import { freshDatabase } from '../support/databases.js'
import { openProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { repeats } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import type { Payloads } from './support/jobs.js'
import { Producer } from './support/producer.js'

const LONG_MS = 120_000
const ENDS = ['complete', 'complete', 'complete', 'flaky', 'complete', 'die'] as const
const batch = (): Payloads['work'][] =>
  Array.from({ length: 48 }, (_, n) => ({ ms: n % 20, end: ENDS[n % 6] ?? 'die' }))

let stop = async () => {}
afterAll(() => stop())

test('everything breaks once while RabbitMQ carries the jobs', { timeout: 300_000 }, async context => {
  const program = findRabbitmqServer()
  if (program === undefined) return context.skip('needs rabbitmq-server: it is not installed here')
  const server = await startTemporaryRabbitmq(program)
  stop = server.stop
  const { url: database = '' } = await freshDatabase('server', { migrated: false })
  const [toBroker, toLedger] = await Promise.all([openProxy(server.url), openProxy(database)])
  onTestFinished(() => Promise.all([toBroker.close(), toLedger.close()]).then(() => {}))
  const producer = await Producer.open(database, { rabbitmq: { url: server.url, publishTimeoutMs: 2_000 } })
  const settings = { database: toLedger.url, concurrency: 8, leaseMs: 5_000, pollMs: 200 }
  const fleet = new Fleet({ ...settings, rabbitmq: { url: toBroker.url } })
  const [first, second] = await Promise.all([fleet.start(), fleet.start()])
  const feed = producer.feed(fleet, batch)

  // A worker is killed: what it had runs again, from the ledger.
  await fleet.hears(150)
  await fleet.kill(first)
  await Promise.all([fleet.start(), fleet.hears(150)])

  // Connections are cut, and answers lost: whether an acknowledgement counted is then not known.
  for (let cuts = 0; cuts < 3; cuts += 1) {
    await fleet.hears(150)
    toBroker.cut()
  }
  await fleet.hears(100)
  toBroker.swallowAnswers(2)
  await fleet.hears(150)

  // Without the ledger, what succeeds goes on; what fails waits for it.
  toLedger.refuse(true)
  toLedger.cut()
  const finishedBefore = fleet.of('finished').length
  await fleet.until('jobs succeed without the ledger', () => fleet.of('finished').length > finishedBefore + 50)
  toLedger.refuse(false)
  await fleet.hears(150)

  // The broker is restarted, as an operator would: one that is killed may forget acknowledgements of its last moments.
  await server.end()
  await server.start()
  await fleet.hears(150)
  await fleet.kill(second)
  await Promise.all([fleet.start(), fleet.hears(100)])
  await feed.stop()

  const raw = await amqp.connect(server.url)
  onTestFinished(() => raw.close())
  const channel = await raw.createChannel()
  // What is in a worker's hands is in neither place: each that was acknowledged has to turn up as done or dead.
  const missing = async () => {
    const inLedger = new Map((await booksAt(database)).entries.map(entry => [entry.id, entry.state]))
    const finished = new Set(fleet.of('finished').map(({ id }) => id))
    return [...producer.acknowledged].filter(id =>
      producer.expected.get(id) === 'dead' ? inLedger.get(id) !== 'dead' : !finished.has(id) && !inLedger.has(id),
    )
  }
  const nothingIsLeft = async () => {
    const { messageCount } = await channel.checkQueue('chaos')
    return messageCount === 0 && (await liveJobs(database)) === 0 && (await missing()).length === 0
  }
  await until('all are done or dead, and nothing is left', nothingIsLeft, LONG_MS).catch(async error => {
    expect(await missing(), 'acknowledged, and neither done nor dead').toEqual([])
    throw error
  })

  const { entries } = await booksAt(database)
  const buried = entries.filter(({ id, state }) => state === 'dead' && producer.expected.get(id) === 'completed')
  expect(buried, 'dead although they should have been done').toEqual([])
  expect([...repeats(fleet)]).toEqual([])
})
