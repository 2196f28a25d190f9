// Connections are cut under load: by the server, and on the wire after the server has done what it was asked. Workers
// and producers go on by themselves; nothing is lost, and nothing stays behind that everyone takes to be running.
import { expect, onTestFinished, test } from 'vitest'
import { administer, freshDatabase } from '../support/databases.js'
import { openProxy } from '../support/proxy.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, liveStates } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

const settings = { concurrency: 6, leaseMs: 3_000, pollMs: 200 }
const batch = () => Array.from({ length: 50 }, (_, index) => ({ ms: index }))

/** Every backend of this database that is ours: producers, workers, listeners. */
const TERMINATE = `
  SELECT count(pg_terminate_backend(pid))::integer AS cut FROM pg_stat_activity
  WHERE datname = current_database() AND application_name LIKE 'redrive%'`

const nothingIsLeft = (url: string) =>
  until('every job has ended', async () => Object.keys(await liveStates(url)).length === 0, 60_000)

test('every connection is ended by the server, again and again', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ ...settings, database: url })
  const workers = await Promise.all([fleet.start(), fleet.start()])

  const feed = producer.feed(fleet, batch)
  for (let rounds = 0; rounds < 15; rounds += 1) {
    await fleet.hears(100)
    expect(await administer(url, TERMINATE)).toEqual([{ cut: expect.any(Number) }])
  }
  await feed.stop()
  await nothingIsLeft(url)

  for (const { pid } of workers) fleet.excused.add(pid)
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})

test('the wire breaks after the server did what it was asked, and nobody hears of it', async () => {
  const { url = '' } = await freshDatabase('server')
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const producer = await Producer.open(proxy.url)
  const fleet = new Fleet({ ...settings, database: proxy.url })
  const workers = await Promise.all([fleet.start(), fleet.start()])

  const feed = producer.feed(fleet, batch)
  for (let rounds = 0; rounds < 30; rounds += 1) {
    await fleet.hears(40)
    proxy.swallowAnswers(5)
  }
  await feed.stop()
  proxy.swallowAnswers(0)
  await nothingIsLeft(url)

  expect(proxy.swallowed).toBeGreaterThan(50)
  for (const { pid } of workers) fleet.excused.add(pid)
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})

test('the network is silent for longer than the lease: the worker stops by itself, and comes back by itself', async () => {
  const { url = '' } = await freshDatabase('server')
  const proxy = await openProxy(url)
  onTestFinished(() => proxy.close())
  const producer = await Producer.open(url)
  const fleet = new Fleet({ ...settings, leaseMs: 1_500 })
  const cutOff = await fleet.start({ name: 'cut-off', database: proxy.url })
  const [id = ''] = await producer.enqueue('gate', {})
  await cutOff.hears('started')

  proxy.freeze()
  expect(await cutOff.hears('threw')).toMatchObject({ id, attempt: 1, code: 'LEASE_LOST' })
  const other = await fleet.start({ name: 'other', database: url })
  expect(await other.hears('started')).toMatchObject({ id })
  other.say({ do: 'open', ids: [id] })
  await other.hears('settled')
  await fleet.kill(other)

  proxy.cut()
  expect(await cutOff.hears('refused')).toMatchObject({ id, outcome: 'interrupted' })
  const [next = ''] = await producer.enqueue('work', { ms: 1 })
  await cutOff.hears('settled', news => news.id === next)
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})
