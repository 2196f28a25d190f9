// A paused queue of a broker, whatever is on its way: nothing of it is started, and it waits in the ledger.
import { expect, it, onTestFinished } from 'vitest'
import { systemClock, systemRandom } from '../../src/domain/clock.js'
import type { SessionId } from '../../src/domain/ids.js'
import { ensureQueues, pauseQueue, resumeQueue } from '../../src/ledger/queue.js'
import { defineJob } from '../../src/runtime/definition.js'
import { Hands } from '../../src/runtime/hands.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { Carriers } from '../../src/transport/carriers.js'
import { aDelivery, type HandHeldBroker, handHeldBroker } from '../support/hand-held-broker.js'
import { rowsOf } from '../support/ledger-state.js'
import { openRuntime } from '../support/runtime.js'
import { aJob, aSession, retried } from '../support/story.js'
import { until } from '../support/until.js'

const DEMAND = [{ queue: 'mail', name: 'send', limit: 10 }]
const LIMIT_MS = 1_000

async function open(change?: (runtime: Runtime) => Partial<Runtime>) {
  const moving = await openRuntime('memory', change)
  const held = handHeldBroker()
  const errors: unknown[] = []
  const ledger: { session: SessionId | undefined } = { session: await aSession(moving.db) }
  const hands = new Hands(
    moving.runtime,
    {
      worker: 'w1',
      definitions: [defineJob({ name: 'send', queue: 'mail', service: 'smtp', handler() {} })],
      concurrency: 10,
      session: () => ledger.session,
      safe: () => ledger.session !== undefined,
      free: () => 10,
      onWake() {},
      release: () => [],
      write() {},
      onError: error => errors.push(error),
    },
    new Map([['mail', held.broker]]),
  )
  onTestFinished(async () => {
    await hands.leave(LIMIT_MS)
    await hands.close(LIMIT_MS)
    expect(errors).toEqual([])
  })
  return { ...moving, ...held, hands, ledger }
}

it('what arrives after its queue was paused is left to the ledger, and what arrives after a resume is not', async () => {
  const { hands, deliver, acknowledged, see } = await open()
  hands.setPaused('mail', true)
  const late = aJob()
  const delivery = aDelivery(late)
  deliver(delivery)
  expect(hands.take(DEMAND, 10)).toEqual([])
  await until('the ledger has it', () => acknowledged.includes(delivery))
  expect(await see(late.id)).toMatchObject({ state: 'waiting', service: 'smtp', attempt: 0, lost: 0, attempts: [] })
  hands.setPaused('mail', false)
  const next = aJob()
  deliver(aDelivery(next))
  expect(hands.take(DEMAND, 10)).toMatchObject([{ id: next.id, attempt: 1 }])
})

it('a connection that breaks before the ledger has what arrived too late loses none of it', async () => {
  const { hands, deliver, lose, acknowledged, ledger, db, see } = await open()
  const { session } = ledger
  ledger.session = undefined
  hands.setPaused('mail', true)
  const late = aJob()
  const delivery = aDelivery(late)
  deliver(delivery)
  expect(hands.take(DEMAND, 10)).toEqual([])
  lose([delivery])
  ledger.session = session
  await until('the ledger has it', async () => (await rowsOf(db, 'job')).length > 0)
  expect(await see(late.id)).toMatchObject({ state: 'waiting', attempt: 0, lost: 0, attempts: [] })
  expect(acknowledged).toEqual([])
})

it('ends of jobs with long payloads reach the ledger in several pieces', async () => {
  let transactions = 0
  const { hands, deliver, see } = await open(({ db }) => ({
    db: {
      ...db,
      transaction(work) {
        transactions += 1
        return db.transaction(work)
      },
    },
  }))
  const payloadText = JSON.stringify('x'.repeat(1_000_000))
  const jobs = Array.from({ length: 20 }, () => aJob({ payloadText }))
  for (const job of jobs) deliver(aDelivery(job))
  const taken = [...hands.take(DEMAND, 10), ...hands.take(DEMAND, 10)]
  expect(taken).toHaveLength(20)
  expect(await hands.settle(taken.map(job => retried(job)))).toEqual([])
  expect(transactions).toBe(2)
  for (const { id } of jobs) expect((await see(id)).state).toBe('retrying')
})

it('a worker that comes up while a queue is paused starts nothing of it, even if a broker delivers at once', async () => {
  const held: HandHeldBroker = handHeldBroker()
  const context = { env: {}, clock: systemClock, random: systemRandom, onError: () => {} }
  const choice = { name: 'redis', whenDown: 'fail', open: () => held.broker } as const
  const carriers = new Carriers({ redis: choice }, { mail: 'redis' }, context)
  const { db, runtime, work } = await openRuntime('memory', () => ({ carriers }))
  await ensureQueues(db, ['mail'])
  await pauseQueue(db, 'mail', 'a test')
  const jobs = Array.from({ length: 50 }, () => aJob())
  for (const job of jobs) held.deliver(aDelivery(job))
  const started: string[] = []
  const send = defineJob({ name: 'send', queue: 'mail', handler: (_, { job }) => void started.push(job.id) })
  await work([send]).ready
  await until('the ledger has them', () => held.acknowledged.length === jobs.length)
  expect(started).toEqual([])
  expect(new Set((await rowsOf(db, 'job')).map(({ state }) => state))).toEqual(new Set(['waiting']))
  await resumeQueue(db, 'mail', runtime.transport.channel)
  await until('they have run', () => started.length === jobs.length)
  expect(started.toSorted()).toEqual(jobs.map(({ id }) => id).toSorted())
})
