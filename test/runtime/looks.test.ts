// When a worker looks again, and when a place that becomes free is no reason to.
import { expect, it } from 'vitest'
import { Looks } from '../../src/runtime/looks.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { claimed } from '../support/fake-worker.js'

const MAIL = { queue: 'mail', name: 'send', limit: 5 }
const REPORT = { queue: 'mail', name: 'report', limit: 1 }

function someLooks(pollMs = 1_000) {
  const clock = manualClock()
  const looks = new Looks(clock, pollMs)
  /** A look for jobs of these lanes that finds so many of the first. */
  const see = (found: number, demand = [MAIL], lanes = demand.length) => {
    looks.begin()
    const jobs = Array.from({ length: found }, () => claimed({ queue: 'mail', name: demand[0]?.name ?? '' }))
    return looks.saw({ demand, limit: demand.reduce((sum, { limit }) => sum + limit, 0), jobs, lanes })
  }
  return { clock, looks, see }
}

it('looks again at once if there may be more, soon if there was some, and then less and less often', () => {
  const { see } = someLooks(200)
  expect(see(5)).toBe(0)
  expect([see(4), see(0), see(0), see(0), see(0)]).toEqual([25, 50, 100, 200, 200])
  expect(see(1)).toBe(25)
})

it('begins anew when something stirs', () => {
  const { looks, see } = someLooks()
  for (let nth = 0; nth < 5; nth += 1) see(0)
  expect(looks.restMs).toBe(800)
  looks.stir()
  expect(looks.restMs).toBe(0)
  expect(see(0)).toBe(50)
})

it('is quiet when a look found nothing and nothing has stirred for a while', async () => {
  const { clock, looks, see } = someLooks()
  looks.stir()
  see(0)
  expect(looks.isQuiet).toBe(false)
  await clock.advance(100)
  expect(looks.isQuiet).toBe(true)
  looks.begin()
  expect(looks.isQuiet).toBe(false)
  see(1)
  expect(looks.isQuiet).toBe(false)
  await clock.advance(100)
  expect(looks.isQuiet).toBe(true)
  looks.stir()
  expect(looks.isQuiet).toBe(false)
})

it('is not quiet where a lane was full, or not asked for', async () => {
  const { clock, looks, see } = someLooks()
  see(1, [REPORT, MAIL])
  await clock.advance(100)
  expect(looks.isQuiet).toBe(false)
  see(0, [MAIL], 2)
  expect(looks.isQuiet).toBe(false)
  see(0, [REPORT, MAIL])
  expect(looks.isQuiet).toBe(true)
})

it('is calm while few jobs come, one after the other', async () => {
  const { clock, looks, see } = someLooks()
  const everyFewMs = async (ms: number, times: number) => {
    for (let nth = 0; nth < times; nth += 1) {
      see(1)
      await clock.advance(ms)
    }
  }
  see(0)
  expect(looks.isCalm).toBe(true)
  await everyFewMs(25, 20)
  expect(looks.isCalm).toBe(true)
  await everyFewMs(5, 40)
  expect(looks.isCalm).toBe(false)
  await everyFewMs(50, 10)
  expect(looks.isCalm).toBe(true)
  see(5)
  expect(looks.isCalm).toBe(false)
})
