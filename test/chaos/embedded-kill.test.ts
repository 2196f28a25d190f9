// One process with the embedded database enqueues and works, and is killed with -9, again and again. Whatever it had
// acknowledged is there afterwards, and in the end everything is done.
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openPGlite } from '../../src/ledger/databases/pglite.js'
import { seededRandom } from '../../src/testing/index.js'
import { until } from '../support/until.js'
import { complaints } from './support/accounting.js'
import { type Books, readBooks } from './support/books.js'
import { Fleet } from './support/fleet.js'

const ROUNDS = 5
const seed = Number(process.env.REDRIVE_CHAOS_SEED ?? Math.floor(Math.random() * 2 ** 32))

let folder: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'redrive-embedded-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

test(`an embedded process killed in a loop keeps what it acknowledged (REDRIVE_CHAOS_SEED=${seed})`, async () => {
  const random = seededRandom(seed)
  const fleet = new Fleet({ folder, concurrency: 5, leaseMs: 1_500, pollMs: 100 })
  const evidence = async () => ({
    ...fleet,
    acknowledged: fleet.of('acknowledged').flatMap(({ ids }) => ids),
    books: await booksIn(folder),
  })

  for (let round = 1; round <= ROUNDS; round += 1) {
    const child = await fleet.start({ enqueuing: true })
    // Somewhere in the middle of it all, perhaps before the first acknowledgement.
    const enough = child.told.length + Math.floor(random() * 1_500)
    await child.until('it is in the middle of it', () => child.told.length >= enough)
    await fleet.kill(child)
    // One enqueue of at most ten was under way: it may be there, or not.
    expect(complaints({ ...(await evidence()), doubtful: round * 10, allEnded: false })).toEqual([])
  }

  const jobs = (await booksIn(folder)).entries
  const live = new Set(jobs.filter(({ place }) => place === 'live').map(({ id }) => id))
  const last = await fleet.start()
  await last.until('what was left is done', () => [...live].every(id => fleet.ended.has(id)))
  last.signal('SIGTERM')
  expect(await last.ended).toEqual({ code: 0, signal: null })

  const proof = await evidence()
  expect(complaints({ ...proof, doubtful: ROUNDS * 10 })).toEqual([])
  expect(proof.books.tally).toEqual({ completed: jobs.length, cancelled: 0, dead: 0 })
  console.log(
    `seed ${seed}: ${ROUNDS} kills, ${proof.acknowledged.length} jobs acknowledged, ${live.size} left at last`,
  )
})

test('a process killed while it makes its database leaves nothing that keeps the next from starting', async () => {
  const fleet = new Fleet({ folder, concurrency: 1, leaseMs: 1_500 })
  const first = fleet.launch()
  await until('it makes files', () => existsSync(join(folder, 'pgdata', 'PG_VERSION')), 60_000)
  await fleet.kill(first)
  const last = await fleet.start({ enqueuing: true })
  await last.hears('settled', ({ as }) => as === 'complete')
})

async function booksIn(place: string): Promise<Books> {
  const db = await openPGlite(place, { schema: 'redrive' })
  try {
    return await readBooks(text => db.query({ text }))
  } finally {
    await db.close()
  }
}
