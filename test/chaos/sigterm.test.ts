// A deploy: workers get SIGTERM while they work. What was not started goes back at once, what runs may finish within the
// grace time, the rest comes back without spending an attempt. Nobody waits for a lease (pitfall 9).
import { expect, test } from 'vitest'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, claimedAhead, liveJobs, liveStates } from './support/books.js'
import type { Child } from './support/child.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

/** So long that whoever waited for it would be found out. */
const LEASE_MS = 120_000

test('unstarted jobs go back at once, running ones finish within the grace, the rest spends no attempt', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 4, leaseMs: LEASE_MS, pollMs: 100, graceMs: 6_000 })
  // Quick jobs make it claim ahead; between them, four at a time, are some that stay. It has to leave at the first four
  // that find it with jobs claimed and not started.
  const quick = (jobs: number) => producer.enqueue('work', ...Array.from({ length: jobs }, () => ({ ms: 0 })))
  const fours: string[][] = []
  for (let number = 0; number < 10; number += 1) {
    await quick(100)
    fours.push(await producer.enqueue('gate', {}, {}, {}, {}))
  }
  await quick(100)
  const [leaving, next] = await Promise.all([
    fleet.start({ name: 'leaving' }),
    fleet.start({ name: 'next', working: false }),
  ])
  let staying: string[] = []
  let ahead: string[] = []
  for (staying of fours) {
    await leaving.until('its slots are taken', () => staying.every(id => startedBy(leaving).includes(id)))
    ahead = await claimedAhead(url, leaving)
    if (ahead.length > 0) break
    leaving.say({ do: 'open', ids: staying })
  }
  expect(ahead, 'claimed and not started').not.toEqual([])
  const [first = '', second = '', third = '', fourth = ''] = staying

  leaving.signal('SIGTERM')
  await until('only what runs is still held', async () => (await liveStates(url)).active === 4)
  expect(startedBy(leaving)).toEqual(expect.not.arrayContaining(ahead))
  expect(leaving.told.some(news => news.event === 'stopped')).toBe(false)

  leaving.say({ do: 'open', ids: [first, second] })
  next.say({ do: 'work' })
  next.say({ do: 'open', ids: 'all' })
  await leaving.hears('settled', news => news.id === first && news.as === 'complete')
  await leaving.hears('settled', news => news.id === second && news.as === 'complete')
  expect(await leaving.hears('threw', news => news.id === third)).toMatchObject({ code: 'SHUTTING_DOWN' })
  await leaving.hears('settled', news => news.id === fourth && news.as === 'return')
  expect(await leaving.ended).toEqual({ code: 0, signal: null })
  await until('every job has ended', async () => (await liveJobs(url)) === 0)

  const { entries, tally } = await booksAt(url)
  const interrupted = entries.filter(({ interruptions }) => interruptions > 0)
  expect(interrupted.map(({ id }) => id).sort()).toEqual([third, fourth].sort())
  expect(entries.filter(({ attempt, lost }) => attempt !== 1 || lost !== 0)).toEqual([])
  expect(await sessions(url)).toEqual([
    { worker: 'leaving', ended_by: 'stopped' },
    { worker: 'next', ended_by: null },
  ])
  expect(complaints({ ...fleet, ...producer, books: { entries, tally } })).toEqual([])
})

test('a rolling deploy under load spends no attempt and repeats only what it interrupted', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 5, leaseMs: LEASE_MS, pollMs: 100, graceMs: 30 })
  await Promise.all([fleet.start(), fleet.start()])

  const feed = producer.feed(fleet, () => Array.from({ length: 50 }, (_, index) => ({ ms: index * 4 })))
  for (const old of fleet.children) {
    await fleet.hears(200)
    old.signal('SIGTERM')
    await fleet.start()
    expect(await old.ended).toEqual({ code: 0, signal: null })
  }
  await feed.stop()
  await until('every job has ended', async () => (await liveJobs(url)) === 0, 30_000)

  const books = await booksAt(url)
  expect(books.entries.filter(({ attempt, lost }) => attempt !== 1 || lost !== 0)).toEqual([])
  expect(books.entries.some(({ interruptions }) => interruptions > 0)).toBe(true)
  expect((await sessions(url)).map(({ ended_by }) => ended_by)).toEqual(['stopped', 'stopped', null, null])
  expect(complaints({ ...fleet, ...producer, books })).toEqual([])
})

const startedBy = ({ told }: Child) => told.flatMap(news => (news.event === 'started' ? [news.id] : []))

const sessions = async (url: string) =>
  (await administer(url, 'SELECT worker, ended_by FROM redrive.session ORDER BY ended_by IS NULL, id')) as {
    worker: string
    ended_by: string | null
  }[]
