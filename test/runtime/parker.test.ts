// Messages whose jobs this worker does not run, with time by hand: one whose job had succeeded here is acknowledged, whenever
// it came and whatever came with it; and when the connection breaks, what never started goes into the ledger all the same.
import { expect, it, onTestFinished } from 'vitest'
import type { JobId, SessionId } from '../../src/domain/ids.js'
import { Parker, type ParkingCause } from '../../src/runtime/parker.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { Delivery } from '../../src/transport/broker.js'
import { aDelivery, handHeldBroker } from '../support/hand-held-broker.js'
import { rowsOf } from '../support/ledger-state.js'
import { openRuntime } from '../support/runtime.js'
import { aJob, aSession } from '../support/story.js'
import { until } from '../support/until.js'

/** More than the grace that is given to what comes again. */
const GRACE_MS = 3_000
const AGAIN = { type: 'again' } as const
const UNSTARTED = { type: 'unstarted' } as const

async function open() {
  const clock = manualClock()
  const moving = await openRuntime('memory', () => ({ clock }))
  const { consumer, acknowledged } = handHeldBroker()
  const succeeded = new Set<JobId>()
  const errors: unknown[] = []
  const ledger: { session: SessionId | undefined } = { session: await aSession(moving.db) }
  const parker = new Parker(moving.runtime, {
    worker: 'w1',
    session: () => ledger.session,
    standing: id => (succeeded.has(id) ? 'succeeded' : undefined),
    onError: error => errors.push(error),
  })
  parker.start()
  await clock.advance(0)
  onTestFinished(async () => {
    const stopped = parker.stop(0)
    await clock.advance(0)
    await stopped
  })
  const add = (cause: ParkingCause, job = aJob()): Delivery => {
    const delivery = aDelivery(job, cause.type === 'again')
    parker.add({ job, consumer, delivery, cause, arrivedAt: clock.monotonic() })
    return delivery
  }
  /** One that comes again although its job has succeeded here. */
  const addSucceeded = (): Delivery => {
    const job = aJob()
    succeeded.add(job.id)
    return add(AGAIN, job)
  }
  return { ...moving, clock, parker, acknowledged, errors, ledger, add, addSucceeded }
}

it('what comes again and had succeeded here is acknowledged, also when it comes a moment after another', async () => {
  const { clock, parker, acknowledged, addSucceeded, db } = await open()
  const deliveries: Delivery[] = []
  for (let nth = 0; nth < 5; nth += 1) {
    deliveries.push(addSucceeded())
    await clock.advance(7)
  }
  expect(acknowledged).toEqual([])
  await clock.advance(GRACE_MS)
  expect(acknowledged).toEqual(deliveries)
  expect(parker.size).toBe(0)
  expect(await rowsOf(db, 'job')).toEqual([])
})

it('what comes again and had succeeded here is acknowledged, also when something else goes into the ledger meanwhile', async () => {
  const { clock, parker, acknowledged, add, addSucceeded, db, errors } = await open()
  const again = addSucceeded()
  await clock.advance(7)
  const job = aJob()
  const unstarted = add(UNSTARTED, job)
  await until('the ledger has what never started', () => acknowledged.length > 0)
  expect(acknowledged).toEqual([unstarted])
  await until('the other is acknowledged', async () => {
    await clock.advance(GRACE_MS)
    return acknowledged.length > 1
  })
  expect(acknowledged).toEqual([unstarted, again])
  expect(parker.size).toBe(0)
  expect(await rowsOf(db, 'job')).toMatchObject([{ id: job.id, state: 'waiting' }])
  expect(errors).toEqual([])
})

it('when the connection breaks, what never started goes into the ledger; what comes again is left to whoever gets it', async () => {
  const { clock, parker, acknowledged, add, db, see, ledger, errors } = await open()
  const session = ledger.session
  ledger.session = undefined
  const [unstarted, onAnother] = [aJob(), aJob()]
  const lost = [
    add(AGAIN),
    add(UNSTARTED, unstarted),
    add({ type: 'unknown' }),
    add({ type: 'malformed', problem: 'it has no redrive-name' }),
  ]
  const kept = add({ type: 'unknown' }, onAnother)
  parker.drop(new Set(lost))
  expect(parker.size).toBe(2)
  ledger.session = session
  await until('the ledger has what is left', async () => {
    await clock.advance(GRACE_MS)
    return parker.size === 0
  })
  expect((await rowsOf(db, 'job')).map(({ id }) => id).toSorted()).toEqual([unstarted.id, onAnother.id].toSorted())
  expect(await see(unstarted.id)).toMatchObject({ state: 'waiting', attempt: 0, lost: 0, attempts: [] })
  expect(await rowsOf(db, 'dead_letter')).toEqual([])
  // Nobody may say anything of the others to the broker.
  expect(acknowledged).toEqual([kept])
  expect(errors).toEqual([])
})
