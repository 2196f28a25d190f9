// The guide through a bad night is played on an embedded ledger, command by command; what it shows is what is printed. Run with
// `-u` it is written anew.
import { afterAll, expect, it } from 'vitest'
import { createHttp, type Served, serve } from '../../src/http/index.js'
import { defineJob, fixed, TransientError } from '../../src/index.js'
import { openLibrary } from '../support/library.js'
import { until } from '../support/until.js'
import { play } from './console.js'
import { ROOT, readPage } from './pages.js'

const PAGE = 'docs/operations/bad-night.md'
const SECRET = 'the-token-of-ada'
const MINUTE = 60_000
const HOUR = 60 * MINUTE
/** The night passes in leaps; it is over before the worker's lease is. */
const LEASE_MS = HOUR
const LIMIT_MS = 60_000

let served: Served | undefined
afterAll(() => served?.close())

it('prints what the page shows', { timeout: 4 * LIMIT_MS }, async () => {
  let nowMs = Date.parse('2026-11-15T02:40:00Z')
  let bankAnswers = true
  let isFixed = false
  const { redrive, next } = await openLibrary('memory', {
    now: () => new Date(nowMs),
    version: 'r42',
    leaseMs: LEASE_MS,
    services: { bank: { breaker: { openMs: HOUR, openMaxMs: HOUR, jitter: 0 } } },
    recoveryIntervalMs: 86_400_000,
    healthIntervalMs: 3_600_000,
  })
  const pay = defineJob({
    name: 'capture-payment',
    queue: 'payments',
    service: 'bank',
    retry: { attempts: 3, backoff: fixed({ delayMs: 30_000 }), jitter: false },
    handler: async ({ order }: { order: number }) => {
      if (!bankAnswers) throw withStack(new TransientError('bank: 503 upstream connect error'), 'src/bank.ts:58:13')
      return { captured: order }
    },
  })
  const render = defineJob({
    name: 'render-invoice',
    queue: 'invoices',
    handler: async ({ order, customer }: { order: number; customer?: { vatId: string } }) => {
      if (customer || isFixed) return { file: `invoices/${order}.pdf` }
      throw withStack(new TypeError("Cannot read properties of undefined (reading 'vatId')"), 'src/invoice.ts:112:31')
    },
  })
  const tidied = next('recovery.finished')
  const worker = redrive.work([pay, render], { concurrency: 1 })
  const counts = async () => {
    const queues = await redrive.operator.queues.statistics()
    const letters = await redrive.operator.deadLetters.statistics()
    const open = letters.filter(({ status }) => status === 'pending' || status === 'redriving')
    const sum = (some: typeof letters) => some.reduce((total, { count }) => total + count, 0)
    const recovered = letters.filter(({ status }) => status === 'recovered')
    return { queues, open: sum(open), recovered: sum(recovered) }
  }
  const payments = async () => {
    const found = (await counts()).queues.find(({ queue }) => queue === 'payments')
    return found ?? { retrying: 0, waiting: 0 }
  }
  /** Nothing runs or waits any more, in queues that are not paused. */
  const still = () =>
    until(
      'all is still',
      async () => {
        const { queues } = await counts()
        return queues.every(({ paused, waiting, active, retrying }) => paused || waiting + active + retrying === 0)
      },
      LIMIT_MS,
    )
  const orders = (from: number, count: number) => Array.from({ length: count }, (_, nth) => from + nth)

  const stages = {
    async 'the night begins'() {
      await worker.ready
      // What a worker does besides begins when it has nothing to do: not in the middle of the night.
      await tidied
      await redrive.enqueueMany(
        pay,
        orders(5_000, 40).map(order => ({ payload: { order } })),
      )
      await still()
      nowMs += MINUTE
      bankAnswers = false
      // The page shows the last but one: those that end together may be listed in any order, so the last ones do not.
      for (const some of [orders(7_000, 57), [7_057], [7_058], [7_059]]) {
        await redrive.enqueueMany(
          render,
          some.map(order => ({ payload: { order, ...(order % 2 === 0 && { customer: { vatId: 'DE1' } }) } })),
        )
        await still()
      }
      nowMs += MINUTE
      const sendPayments = (from: number, count: number) =>
        redrive.enqueueMany(
          pay,
          orders(from, count).map(order => ({ payload: { order } })),
        )
      // One dies of its three attempts, two more fail once: five in a row, and the breaker opens.
      const died = next('job.dead')
      const retried = [1, 2].map(number => next('job.retrying', ({ attempt }) => attempt === number))
      await sendPayments(6_000, 1)
      for (const again of retried) {
        await again
        nowMs += 30_000
      }
      await died
      const opened = next('breaker.changed', ({ to }) => to === 'open')
      await sendPayments(6_001, 2)
      await opened
      await until('both are settled', async () => (await payments()).retrying === 2, LIMIT_MS)
      await sendPayments(6_003, 22)
      nowMs = Date.parse('2026-11-15T03:01:30Z')
      await redrive.recover()
      nowMs = Date.parse('2026-11-15T03:02:00Z')
      await until('they are in line again', async () => (await payments()).waiting === 24, LIMIT_MS)
    },
    async 'invoices are corrected'() {
      isFixed = true
      nowMs = Date.parse('2026-11-15T03:15:00Z')
    },
    async 'one is done'() {
      await until('it has recovered', async () => (await counts()).recovered === 1, LIMIT_MS)
      nowMs += MINUTE
    },
    async 'the bank is back'() {
      await until(
        'every invoice is done',
        async () => (await counts()).queues.every(({ queue, dead }) => queue !== 'invoices' || dead === 0),
        LIMIT_MS,
      )
      bankAnswers = true
      nowMs = Date.parse('2026-11-15T03:26:00Z')
    },
    async 'payments run'() {
      await until(
        'no payment is held',
        async () => {
          nowMs += 100
          const { queues } = await counts()
          return queues.every(({ held, waiting, active, retrying }) => held + waiting + active + retrying === 0)
        },
        LIMIT_MS,
      )
      nowMs = Date.parse('2026-11-15T03:30:00Z')
    },
    async 'all is done'() {
      await until('nothing is open', async () => (await counts()).open === 0, LIMIT_MS)
      await redrive.recover()
      nowMs += MINUTE
    },
  }
  served = await serve(createHttp(redrive, { tokens: `ada:admin:${SECRET}`, env: {} }), { port: 0 })
  const played = await play(readPage(PAGE).text, { url: served.url, token: SECRET, now: () => nowMs, stages })
  await worker.stop()
  await expect(played).toMatchFileSnapshot(ROOT + PAGE)
})

function withStack<Failure extends Error>(error: Failure, place: string): Failure {
  error.stack = `${error.name}: ${error.message}\n    at ${place}`
  return error
}
