// A worker is killed with -9 while it runs jobs. Others run them again as soon as its lease is over, and not before: what
// live workers run is left alone, however long it takes (pitfall 2).
import { expect, test } from 'vitest'
import { administer, freshDatabase } from '../support/databases.js'
import { complaints } from './support/accounting.js'
import { booksAt } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

const LEASE_MS = 2_000
/** The exact figure is the benchmark's; on a busy machine it only must not be of another order. */
const AT_MOST_MS = 10_000

test("a killed worker's jobs run again within its lease and a moment", async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 20, leaseMs: LEASE_MS, pollMs: 200 })

  const victim = await fleet.start({ name: 'victim', concurrency: 5 })
  const finished = await producer.enqueue('work', { ms: 1 }, { ms: 1 })
  await victim.until('it has finished two', () => finished.every(id => fleet.ended.has(id)))
  const unfinished = await producer.enqueue('gate', {}, {}, {}, {}, {})
  await victim.until('its five slots are taken', () => unfinished.every(id => startsOf(victim.pid).includes(id)))

  // The victim has no slot left: this one is the survivor's, and takes longer than any lease.
  const survivor = await fleet.start({ name: 'survivor' })
  const [kept = ''] = await producer.enqueue('work', { ms: LEASE_MS * 2 })
  await survivor.hears('started', news => news.id === kept)
  await fleet.kill(victim)
  const killedAt = performance.now()
  await survivor.until('it runs what the victim ran', () => unfinished.every(id => startsOf(survivor.pid).includes(id)))
  const tookMs = performance.now() - killedAt
  console.log(`run again ${Math.round(tookMs)} ms after the kill, with a lease of ${LEASE_MS} ms`)
  expect(tookMs).toBeLessThan(AT_MOST_MS)

  survivor.say({ do: 'open', ids: 'all' })
  await survivor.until('all is done', () => [...producer.acknowledged].every(id => fleet.ended.has(id)))
  expect(startsOf(survivor.pid)).toEqual(expect.not.arrayContaining(finished))
  expect(startsOf(survivor.pid).filter(id => id === kept)).toHaveLength(1)
  const lost = await administer(url, `SELECT id::text FROM redrive.finished_job WHERE lost = 1 AND attempt = 2`)
  expect(new Set(lost.map(row => (row as { id: string }).id))).toEqual(new Set(unfinished))
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])

  function startsOf(pid: number): string[] {
    return fleet.of('started').flatMap(news => (news.pid === pid ? [news.id] : []))
  }
})
