// Jobs come one by one and are handed to workers that stand by, while those are killed, leave, or lose the connection on which
// they hear of them. Nothing is lost, and nothing runs twice that was not cut short.
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/testing/index.js'
import { betweenBy } from '../support/between.js'
import { administer, freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

const WORKERS = 3
const ROUNDS = 9
const seed = Number(process.env.REDRIVE_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))

const CUT_LISTENERS = `
  SELECT count(pg_terminate_backend(pid))::integer AS cut FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'redrive listener'`
/** Claimed by the statement that enqueued it. */
const HANDED = 'SELECT count(*)::integer AS count FROM redrive.finished_job WHERE claimed_at = created_at'

test(`workers that stand by are killed, leave and go deaf (REDRIVE_CHAOS_SEED=${seed})`, async () => {
  const between = betweenBy(seededRandom(seed))
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 6, leaseMs: 2_000, pollMs: 200 })
  await Promise.all(Array.from({ length: WORKERS }, () => fleet.start()))

  let isFed = true
  const feeding = (async () => {
    while (isFed) {
      await producer.enqueue('work', { ms: between(0, 30), end: 'complete' })
      await setTimeout(between(5, 40))
    }
  })()
  for (let round = 0; round < ROUNDS; round += 1) {
    await setTimeout(between(500, 1_500))
    const victim = fleet.children[between(0, WORKERS - 1)]
    if (round % 3 === 0) await administer(url, CUT_LISTENERS)
    else if (victim) {
      if (round % 3 === 1) await fleet.kill(victim)
      else await fleet.dismiss(victim)
      await fleet.start()
    }
  }
  isFed = false
  await feeding
  await until('every job has ended', async () => (await liveJobs(url)) === 0, 60_000)

  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
  const [handed] = (await administer(url, HANDED)) as { count: number }[]
  expect(handed?.count).toBeGreaterThan(producer.acknowledged.size / 10)
  console.log(`seed ${seed}: ${producer.acknowledged.size} jobs, ${handed?.count} of them handed over`)
})

test('from the moment in which a worker is killed, nothing is handed to it', async () => {
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  // So long that whoever waited for the end of it would be found out.
  const fleet = new Fleet({ database: url, concurrency: 6, leaseMs: 120_000, pollMs: 2_000 })
  const [victim] = await Promise.all([fleet.start(), fleet.start()])
  const standing = () => administer(url, 'SELECT DISTINCT session_id FROM redrive.standby')
  await until('both stand by', async () => (await standing()).length === 2)
  await fleet.kill(victim)
  for (let nth = 0; nth < 20; nth += 1) await producer.enqueue('work', { ms: 0, end: 'complete' })
  await until('every job has ended', async () => (await liveJobs(url)) === 0)
  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})
