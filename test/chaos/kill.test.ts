// Workers are killed with -9 at random under load, and replaced. Nothing is lost, nothing ends twice, and only what a
// killed worker had not finished runs again.
import { expect, test } from 'vitest'
import { seededRandom } from '../../src/testing/index.js'
import { betweenBy } from '../support/between.js'
import { freshDatabase } from '../support/databases.js'
import { until } from '../support/until.js'
import { complaints, repeated } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import type { Payloads } from './support/jobs.js'
import { Producer } from './support/producer.js'

const WORKERS = 3
const KILLS = 8
const seed = Number(process.env.REDRIVE_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))

test(`workers killed at random under load (REDRIVE_CHAOS_SEED=${seed})`, async () => {
  const between = betweenBy(seededRandom(seed))
  const { url = '' } = await freshDatabase('server')
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 6, leaseMs: 2_000, pollMs: 200 })
  await Promise.all(Array.from({ length: WORKERS }, () => fleet.start()))

  const ends: Payloads['work']['end'][] = ['complete', 'complete', 'complete', 'flaky', 'die', 'cancel']
  const feed = producer.feed(fleet, () =>
    Array.from({ length: 100 }, () => ({ ms: between(5, 80), end: ends[between(0, ends.length - 1)] ?? 'complete' })),
  )
  for (let kills = 0; kills < KILLS; kills += 1) {
    await fleet.hears(between(50, 500))
    const victim = fleet.children[between(0, WORKERS - 1)]
    if (victim) await fleet.kill(victim)
    await fleet.start()
  }
  await feed.stop()
  await until('every job has ended', async () => (await liveJobs(url)) === 0, 60_000)

  const books = await booksAt(url)
  expect(complaints({ ...fleet, ...producer, books })).toEqual([])
  const again = repeated(fleet.told).length
  expect(again).toBeGreaterThan(0)
  console.log(`seed ${seed}: ${KILLS} kills, ${producer.acknowledged.size} jobs, ${again} of them ran more than once`)
})
