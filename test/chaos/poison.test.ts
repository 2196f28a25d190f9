// A job that kills its worker kills the next one too, until it is buried for it; those that only ran beside it complete.
// A worker that was shut down was not killed: that never counts against a job (pitfall 8).
import { expect, test } from 'vitest'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

test('a job that kills three workers is buried as poison, and its neighbours complete', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 4, leaseMs: 1_500, pollMs: 100 })
  const innocent = await producer.enqueue('gate', {}, {}, {})
  const [poison = ''] = await producer.enqueue('poison', {})
  producer.expected.set(poison, 'dead')

  const first = await fleet.start()
  await first.until('all of them run', () => first.told.filter(news => news.event === 'started').length === 4)
  first.say({ do: 'open', ids: [poison] })
  expect(await first.ended).toMatchObject({ signal: 'SIGKILL' })

  const others = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  for (const other of others) other.say({ do: 'open', ids: innocent })
  await until('every job has ended', async () => (await liveJobs(url)) === 0, 60_000)

  const killed = fleet.of('started').flatMap(({ id, pid }) => (id === poison ? [pid] : []))
  expect(new Set(killed).size).toBe(3)
  const dead = [first, ...others].filter(({ pid }) => killed.includes(pid))
  expect(await Promise.all(dead.map(child => child.ended))).toEqual(dead.map(() => ({ code: null, signal: 'SIGKILL' })))
  for (const pid of killed) fleet.excused.add(pid)

  expect(
    await administer(url, 'SELECT id::text, kind::text, lost, total_attempts, reason FROM redrive.dead_letter'),
  ).toEqual([
    { id: poison, kind: 'lost', lost: 3, total_attempts: 3, reason: 'poison: its worker died 3 times while it ran' },
  ])
  const books = await booksAt(url)
  expect(
    books.entries
      .filter(({ state }) => state === 'completed')
      .map(({ id }) => id)
      .sort(),
  ).toEqual(innocent.sort())
  expect(complaints({ ...fleet, ...producer, books })).toEqual([])
})

test('a job whose workers are shut down again and again is not blamed for it', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 1, leaseMs: 60_000, pollMs: 100, graceMs: 0 })
  const [id = ''] = await producer.enqueue('gate', {})

  for (let shutdowns = 0; shutdowns < 4; shutdowns += 1) {
    const worker = await fleet.start()
    await worker.hears('started')
    worker.signal('SIGTERM')
    expect(await worker.ended).toEqual({ code: 0, signal: null })
  }
  const last = await fleet.start()
  last.say({ do: 'open', ids: 'all' })
  await last.hears('settled')

  const books = await booksAt(url)
  expect(books.entries).toEqual([
    { id, place: 'finished', state: 'completed', attempt: 1, lost: 0, interruptions: 4, reason: null },
  ])
  expect(complaints({ ...fleet, ...producer, books })).toEqual([])
})
