// The server is restarted under load, in order and as after a crash. Every worker reconnects by itself and fetches again:
// none looks alive and does nothing (pitfall 17). A server of our own, never the machine's.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { findPostgresBinaries, startTemporaryPostgres, type TemporaryPostgres } from '../../scripts/postgres.mjs'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { booksAt, liveJobs } from './support/books.js'
import { Fleet } from './support/fleet.js'
import { Producer } from './support/producer.js'

const binaries = findPostgresBinaries()
let server: TemporaryPostgres

beforeAll(async () => {
  if (binaries !== undefined) server = await startTemporaryPostgres(binaries)
})
afterAll(() => server?.stop())

test('the server is restarted under load', async context => {
  if (binaries === undefined) return context.skip('needs initdb and pg_ctl: no Postgres is installed here')
  const { url } = server
  const producer = await Producer.open(url)
  const fleet = new Fleet({ database: url, concurrency: 5, leaseMs: 2_000, pollMs: 200 })
  const workers = await Promise.all([fleet.start(), fleet.start(), fleet.start()])
  // What runs when the server goes may run again: its end cannot be written, or its lease not be renewed.
  for (const { pid } of workers) fleet.excused.add(pid)

  const feed = producer.feed(fleet, () => Array.from({ length: 50 }, (_, index) => ({ ms: 5 + index })))
  for (const mode of ['fast', 'immediate', 'immediate', 'fast'] as const) {
    await fleet.hears(200)
    await server.restart(mode)
    const before = new Map(workers.map(worker => [worker, worker.told.length]))
    for (const worker of workers) {
      await worker.until(`it worked again after a restart (${mode})`, () =>
        worker.told.slice(before.get(worker)).some(news => news.event === 'started'),
      )
    }
  }
  await feed.stop()
  await until('every job has ended', async () => (await liveJobs(url)) === 0, 60_000)

  expect(complaints({ ...fleet, ...producer, books: await booksAt(url) })).toEqual([])
})
