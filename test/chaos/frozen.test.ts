// A worker is frozen (SIGSTOP) past its lease, and woken when another has taken its jobs over. What it brings then comes
// too late: it is refused and noted, and changes nothing (pitfalls 1 and 3).
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, claimedAhead, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-frozen-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

async function stage(concurrency: number) {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency, leaseMs: 1_500, pollMs: 100 })
  const frozen = await fleet.start({ name: 'frozen' })
  fleet.excused.add(frozen.pid)
  return { url, producer, fleet, frozen }
}

const attemptsOf = (url: string, id: string) =>
  administer(
    url,
    `SELECT number, outcome::text, decision::text, kind::text, stale_outcome::text AS stale
     FROM redrive.attempt WHERE job_id = '${id}' ORDER BY lease`,
  )

test('a result that comes after the lease is refused; the job completes once, elsewhere', async () => {
  const { url, producer, fleet, frozen } = await stage(1)
  const gone = join(folder, 'go-on')
  const [id = ''] = await producer.enqueue('block', { until: gone })
  await frozen.hears('started')
  frozen.signal('SIGSTOP')

  const other = await fleet.start({ name: 'other' })
  const done = await other.hears('settled', news => news.id === id)
  expect(done).toMatchObject({ as: 'complete', attempt: 2 })

  await writeFile(gone, '')
  frozen.signal('SIGCONT')
  expect(await frozen.hears('finished')).toMatchObject({ id, attempt: 1 })
  expect(await frozen.hears('refused')).toMatchObject({ id, outcome: 'succeeded' })
  expect(await attemptsOf(url, id)).toEqual([
    { number: 1, outcome: 'lost', decision: 'retry', kind: 'lost', stale: 'succeeded' },
  ])
  expect(frozen.told.filter(news => news.event === 'settled')).toEqual([])

  // It is not dead: with a new session it goes on working.
  await other.kill()
  const [next = ''] = await producer.enqueue('work', { ms: 1 })
  await frozen.hears('settled', news => news.id === next)
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})

test('a handler that still runs when its lease is lost is told so, and its end is refused', async () => {
  const { url, producer, fleet, frozen } = await stage(1)
  const [id = ''] = await producer.enqueue('gate', {})
  await frozen.hears('started')
  frozen.signal('SIGSTOP')

  const other = await fleet.start({ name: 'other' })
  await other.hears('started', news => news.id === id)
  frozen.signal('SIGCONT')
  expect(await frozen.hears('threw')).toMatchObject({ id, attempt: 1, code: 'LEASE_LOST' })
  expect(await frozen.hears('refused')).toMatchObject({ id, outcome: 'interrupted' })

  other.say({ do: 'open', ids: [id] })
  await other.hears('settled', news => news.id === id)
  expect(await attemptsOf(url, id)).toMatchObject([{ number: 1, outcome: 'lost', stale: 'interrupted' }])
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})

test('what it had claimed and not started when it was frozen, it does not start when it wakes', async () => {
  const { url, producer, fleet, frozen } = await stage(1)
  // Quick jobs make it claim ahead; between them are some that keep it busy. It is caught at the first of these that
  // finds it with jobs claimed and not started.
  const quick = (jobs: number) => producer.enqueue('work', ...Array.from({ length: jobs }, () => ({ ms: 0 })))
  const blockers = new Map<string, string>()
  for (let number = 0; number < 20; number += 1) {
    const until = join(folder, `go-on-${number}`)
    await quick(100)
    const [id = ''] = await producer.enqueue('block', { until })
    blockers.set(id, until)
  }
  await quick(100)
  let blocking = ''
  let ahead: string[] = []
  for (const [id, file] of blockers) {
    await frozen.hears('started', news => news.id === id)
    blocking = id
    ahead = await claimedAhead(url, frozen)
    if (ahead.length > 0) break
    await writeFile(file, '')
  }
  expect(ahead, 'claimed and not started').not.toEqual([])
  frozen.signal('SIGSTOP')
  for (const [id, file] of blockers) if (id !== blocking) await writeFile(file, '')

  await fleet.start({ name: 'other', concurrency: 10 })
  await until('the other worker has done everything', async () => (await liveJobs(url)) === 0, 30_000)
  await writeFile(blockers.get(blocking) ?? '', '')
  frozen.signal('SIGCONT')
  await frozen.hears('refused', news => news.id === blocking)
  await frozen.until('all that it had claimed ahead is refused', () => ahead.every(id => refused().has(id)))

  const woken = frozen.told.findIndex(news => news.event === 'finished' && news.id === blocking)
  expect(frozen.told.slice(woken).filter(news => news.event === 'started')).toEqual([])
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])

  function refused() {
    return new Set(frozen.told.flatMap(news => (news.event === 'refused' ? [news.id] : [])))
  }
})
