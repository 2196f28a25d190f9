// Later: a delayed job is not there before its time, and is there after it.
import { expect } from 'vitest'
import { retried } from '../../support/settlements.js'
import type { Tell } from '../transport.js'
import { ids } from './stage.js'

export function due(tell: Tell): void {
  tell('a delayed job waits for its time', async ({ job, publish, worker, advance, promote, states }) => {
    const later = job({ delayMs: 5_000 })
    await publish(later)
    const one = await worker()
    await promote()
    expect(await one.fetch()).toEqual([])
    expect(await states(later)).toEqual(['scheduled'])
    await advance(4_999)
    await promote()
    expect(await one.fetch()).toEqual([])
    await advance(1)
    await promote()
    expect(ids(await one.fetch())).toEqual([later.id])
  })

  tell('a time in the future is waited for; it beats a delay', async stage => {
    const { job, publish, worker, advance, promote, now } = stage
    const later = job({ runAt: new Date(now().getTime() + 3_000).toISOString(), delayMs: 1 })
    await publish(later)
    const one = await worker()
    await advance(2_999)
    await promote()
    expect(await one.fetch()).toEqual([])
    await advance(1)
    await promote()
    expect(ids(await one.fetch())).toEqual([later.id])
  })

  tell('a time in the past, or now, is due now', async ({ job, publish, worker, now, states }) => {
    const jobs = [
      job({ runAt: new Date(now().getTime() - 3_600_000).toISOString() }),
      job({ runAt: now().toISOString() }),
      job({ delayMs: 0 }),
      job(),
    ]
    await publish(...jobs)
    expect(await states(...jobs)).toEqual(['waiting', 'waiting', 'waiting', 'waiting'])
    expect(ids(await (await worker()).fetch())).toEqual(ids(jobs))
  })

  tell('delayed jobs join the line in the order they become due', async stage => {
    const { job, publish, worker, advance, promote } = stage
    const jobs = [4_000, 1_000, 3_000, 2_000].map(delayMs => job({ delayMs }))
    await publish(...jobs)
    const early = job()
    await publish(early)
    await advance(5_000)
    await promote()
    const expected = [early, ...[1, 3, 2, 0].flatMap(index => jobs[index] ?? [])]
    expect(ids(await (await worker()).fetch())).toEqual(ids(expected))
  })

  tell('a retry that comes due joins the end of the line', async stage => {
    const { job, publish, worker, advance, promote } = stage
    const failing = job()
    await publish(failing)
    const one = await worker()
    await one.settle(retried(await one.take(), 1_000))
    const waiting = [job(), job()]
    await publish(...waiting)
    await advance(1_000)
    await promote()
    expect(ids(await one.fetch())).toEqual(ids([...waiting, failing]))
  })

  tell('priority counts among those that came due together', async ({ job, publish, worker, advance, promote }) => {
    const low = job({ delayMs: 1_000, priority: 1 })
    const high = job({ delayMs: 2_000, priority: 9 })
    await publish(low, high)
    await advance(2_000)
    await promote()
    expect(ids(await (await worker()).fetch())).toEqual(ids([high, low]))
  })
}
