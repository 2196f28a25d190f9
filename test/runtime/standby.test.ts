// When a worker stands by for jobs to be handed over, when it stops, and when it looks for what it may not have heard.
import { expect, it } from 'vitest'
import type { ClaimedJob } from '../../src/domain/job.js'
import { Standby } from '../../src/runtime/standby.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import type { Lane } from '../../src/transport/transport.js'
import { claimed } from '../support/fake-worker.js'

const MAIL: Lane = { queue: 'mail', name: 'send' }

function aStandby() {
  const clock = manualClock()
  const world = {
    lanes: [MAIL] as Lane[],
    hears: true,
    said: [] as number[],
    looks: [] as number[],
    lost: [] as ClaimedJob[],
    errors: [] as unknown[],
    fails: undefined as Error | undefined,
  }
  const standby = new Standby({
    clock,
    lanes: () => world.lanes,
    say: async lanes => {
      world.said.push(lanes.length)
      if (world.fails) throw world.fails
      return world.hears
    },
    unheard: async forMs => {
      world.looks.push(forMs)
      return world.lost.splice(0)
    },
    onError: error => world.errors.push(error),
  })
  return { clock, standby, world, pass: (ms: number) => clock.advance(ms) }
}

it('stands by once', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  standby.standUp()
  await pass(5_000)
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1])
})

it('does not where a job could not start', async () => {
  const { standby, world, pass } = aStandby()
  world.lanes = []
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([])
})

it('stands down when it is full, and not up again at once', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
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

it('looks for what it did not hear: every second while it stands by, and twice after that', async () => {
  const { standby, world, pass } = aStandby()
  expect(await standby.missed()).toEqual([])
  standby.standUp()
  await pass(0)
  for (let ms = 0; ms < 3_500; ms += 100) {
    await pass(100)
    await standby.missed()
  }
  expect(world.looks).toEqual([1_000, 1_000, 1_000])
  standby.standDown()
  for (let ms = 0; ms < 120_000; ms += 500) {
    await pass(500)
    await standby.missed()
  }
  expect(world.looks).toHaveLength(5)
})

it('whoever did not hear of a job does not stand by for a minute', async () => {
  const { standby, world, pass } = aStandby()
  standby.standUp()
  await pass(1_000)
  world.lost = [claimed()]
  expect(await standby.missed()).toEqual([claimed()])
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
    await standby.missed()
  }
  expect(world.said).toEqual([1])
  expect(world.looks).toEqual([])
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 1])
})

it('goes on after it could not say so', async () => {
  const { standby, world, pass } = aStandby()
  world.fails = new Error('no connection')
  standby.standUp()
  await pass(60_000)
  expect(world.errors).toEqual([world.fails])
  world.fails = undefined
  standby.standUp()
  await pass(0)
  expect(world.said).toEqual([1, 1])
})

it('whoever leaves stands down first and looks then; without having stood by, it does neither', async () => {
  const never = aStandby()
  expect(await never.standby.last()).toEqual([])
  expect(never.world.looks).toEqual([])

  const { standby, world } = aStandby()
  standby.standUp()
  world.lost = [claimed()]
  expect(await standby.last()).toEqual([claimed()])
  expect(world.said).toEqual([0])
  expect(world.looks).toEqual([0])
})
