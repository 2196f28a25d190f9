// Behind PgBouncer in transaction mode: what was prepared is on another connection the next time, LISTEN is not there, and
// still every job runs as often as it should (docs/operations/postgres.md).
import { expect, it, onTestFinished } from 'vitest'
import { defineJob, fixed, openRedrive, PermanentError } from '../../src/index.js'
import { freshDatabase } from '../support/databases.js'
import { startPgBouncer } from '../support/pgbouncer.js'
import { until } from '../support/until.js'

const CONNECTIONS = 4
const SMALL = 2_000
const LARGE = 200
const LARGE_TEXT = 'x'.repeat(10_000)

interface Order {
  readonly nth: number
  readonly text: string
}

it('two processes enqueue, work, fail, bury and redrive through a handful of connections', async () => {
  const { url } = await freshDatabase('server', { migrated: false })
  const pooler = await startPgBouncer(url as string, CONNECTIONS)
  onTestFinished(pooler.stop)
  const open = () => openRedrive({ database: pooler.url, listen: false, pollMs: 100 })
  const both = [await open(), await open()]
  onTestFinished(async () => void (await Promise.all(both.map(redrive => redrive.close({ graceMs: 1_000 })))))
  const [one] = both as [(typeof both)[0], (typeof both)[0]]

  const runs = new Map<number, number>()
  let mended = false
  const charge = defineJob<Order>({
    name: 'charge',
    queue: 'orders',
    retry: { attempts: 3, backoff: fixed({ delayMs: 50 }), jitter: false },
    handler: async ({ nth, text }, { attempt }) => {
      if (text !== textOf(nth)) throw new PermanentError(`order ${nth} came with another's text`)
      runs.set(nth, (runs.get(nth) ?? 0) + 1)
      if (isDeclined(nth) && !mended) throw new PermanentError('the card was declined')
      if (failsOnce(nth) && attempt === 1) throw new Error('the connection was reset')
    },
  })
  const textOf = (nth: number) => (nth < SMALL ? 'small' : LARGE_TEXT)
  const isDeclined = (nth: number) => nth % 100 === 1
  const failsOnce = (nth: number) => nth % 10 === 5
  const orders = Array.from({ length: SMALL + LARGE }, (_, nth) => ({ nth, text: textOf(nth) }))
  const declined = orders.filter(({ nth }) => isDeclined(nth)).length

  // Each process a half of them, at once: some one by one, the others in batches; the large ones are several pieces.
  await Promise.all(
    both.map(async (redrive, half) => {
      const mine = orders.filter(({ nth }) => nth % 2 === half)
      for (const order of mine.slice(0, 50)) await redrive.enqueue(charge, order)
      for (let start = 50; start < mine.length; start += 500) {
        await redrive.enqueueMany(
          charge,
          mine.slice(start, start + 500).map(payload => ({ payload })),
        )
      }
    }),
  )
  for (const redrive of both) redrive.work([charge], { concurrency: 20 })
  const ended = async (completed: number, dead: number) => {
    const [orders] = (await one.operator.queues.statistics()).filter(({ queue }) => queue === 'orders')
    return orders?.completed === completed && orders.dead === dead
  }
  await until('all have ended', () => ended(orders.length - declined, declined), 60_000)
  const timesOf = (nth: number) => (failsOnce(nth) ? 2 : 1)
  expect(runs).toEqual(new Map([...runs.keys()].map(nth => [nth, timesOf(nth)])))
  expect(runs.size).toBe(orders.length)

  mended = true
  expect((await one.operator.deadLetters.retryMany({ all: true })).redriven).toHaveLength(declined)
  await until('the others have as well', () => ended(orders.length, 0), 60_000)
  const recovered = await one.operator.deadLetters.list({ status: 'recovered' }, { limit: 1 })
  expect(recovered.items).toHaveLength(1)
}, 90_000)
