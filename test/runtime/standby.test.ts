// When a worker stands by for jobs to be handed over, when it stops, and when it looks for what it may not have heard.
import { expect, it, onTestFinished } from 'vitest'
import { Standby } from '../../src/runtime/standby.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { Lane } from '../../src/transport/transport.js'

const MAIL: Lane = { queue: 'mail', name: 'send' }

function aStandby() {
  const clock = manualClock()
  const world = {
    lanes: [MAIL] as Lane[],
    hears: true,
    /** What whoever enqueues knows. */
    known: 0,
    said: [] as number[],
    looks: [] as number[],
    unheard: 0,
    errors: [] as unknown[],
    fails: undefined as Error | undefined,
    answerIsLost: false,
  }
  const standby = new Standby({
    clock,
    random: () => 0.5,
    lanes: () => world.lanes,
    say: async lanes => {
      if (world.fails) throw world.fails
      world.said.push(lanes.length)
      if (!world.hears) return false
      world.known = lanes.length
      if (world.answerIsLost) throw new Error('no answer came')
      return true
    },
    stand: async ms => {
      if (world.fails) throw world.fails
      world.looks.push(ms)
      const found = world.unheard
      world.unheard = 0
      return { stands: world.known > 0, found }
    },
    onError: error => world.errors.push(error),
  })
  onTestFinished(() => standby.leave().catch(() => {}))
  return { clock, standby, world, pass: (ms: number) => clock.advance(ms) }
}

it('stands by once', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  standby.standUp()
  await pass(10_000)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1])
})

it('does not where a job could not start', async () => {
  const { standby, world, pass } = aStandby()
  world.lanes = []
  standby.standUp()
  await pass(5_000)
  expect(world.said).toEqual([])
})

it('stands down when it is full, and not up again at once', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(0)
  standby.handed(false)
  await pass(0)
  expect(world.said).toEqual([1])
  standby.handed(true)
  standby.handed(true)
  standby.standUp()
  await pass(500)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 0])
  await pass(500)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 0, 1])
})

it('stands down when it is handed many in a short time, not when as many come one after the other', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  for (let nth = 0; nth < 50; nth += 1) {
    standby.handed(false)
    await pass(20)
  }
  expect(world.said).toEqual([1])
  for (let nth = 0; nth < 21; nth += 1) standby.handed(false)
  await pass(200)
  expect(world.said).toEqual([1, 0])
})

it('says every two seconds that it is there, and looks for what it did not hear; for a minute after that as well', async () => {
  const { standby, world, pass } = aStandby()
  await pass(10_000)
  expect(world.looks).toEqual([])
  standby.standUp()
  await pass(9_000)
  expect(world.looks).toEqual([1_000, 1_000, 1_000, 1_000])
  standby.standDown()
  await pass(2_000)
  expect(world.looks).toHaveLength(5)
  await pass(300_000)
  expect(world.looks).toHaveLength(8)
})

it('whoever did not hear of a job does not stand by for a minute', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(1_000)
  world.unheard = 1
  await pass(1_000)
  await pass(59_000)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 0])
  await pass(1_000)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 0, 1])
})

it('whoever does not hear itself asks again in a minute', async () => {
  const { standby, world, pass } = aStandby()
  world.hears = false
  for (let ms = 0; ms < 60_000; ms += 1_000) {
    standby.standUp()
    await pass(1_000)
  }
  expect(world.said).toEqual([1])
  expect(world.looks).toEqual([])
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 1])
})

it('asks again sooner when it is told that it can hear', async () => {
  const { standby, world, pass } = aStandby()
  world.hears = false
  standby.standUp()
  await pass(1_000)
  world.hears = true
  standby.listens()
  standby.standUp()
  await pass(0)
  expect(world.known).toBe(1)
})

it('stands by all the same if the answer was lost, and looks', async () => {
  const { standby, world, pass } = aStandby()
  world.answerIsLost = true
  standby.standUp()
  await pass(5_000)
  expect(world.errors).toHaveLength(1)
  expect(world.said).toEqual([1])
  expect(world.looks.length).toBeGreaterThan(1)
})

it('says so again where that was forgotten', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(3_000)
  world.known = 0
  await pass(3_000)
  expect(world.known).toBe(1)
  expect(world.said).toEqual([1, 1])
})

it('stands down in the end, however often that fails, and looks until then', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(1_000)
  world.fails = new Error('no connection')
  standby.standDown()
  await pass(90_000)
  expect(world.known).toBe(1)
  expect(world.errors.length).toBeGreaterThan(3)
  world.fails = undefined
  await pass(15_000)
  expect(world.known).toBe(0)
  expect(world.looks.length).toBeGreaterThan(0)
})

it('has not stood down as long as there is no session to say so with', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(1_000)
  world.hears = false
  standby.standDown()
  await pass(10_000)
  expect(world.known).toBe(1)
  world.hears = true
  await pass(2_000)
  expect(world.known).toBe(0)
})

it('whoever leaves stands down first and looks then; without having stood by, it does neither', async () => {
  const never = aStandby()
  await never.standby.leave()
  expect(never.world.said).toEqual([])
  expect(never.world.looks).toEqual([])

  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(0)
  await standby.leave()
  expect(world.said).toEqual([1, 0])
  expect(world.looks).toEqual([0])
})
