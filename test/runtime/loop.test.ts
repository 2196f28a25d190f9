// The shape of every background role: step, wait, step; faster when nudged, slower while it fails, and a clean stop.
import { describe, expect, it } from 'vitest'
import { type Loop, loop } from '../../src/runtime/loop.js'
import { manualClock } from '../../src/testing/manual-clock.js'
import { gate } from '../support/gate.js'

interface Told {
  readonly steps: number[]
  readonly errors: unknown[]
}

/** A loop whose steps note the time they ran at. `step` says how long to wait, or throws. */
function story(step: (nth: number) => number | Promise<number>, chance = 1) {
  const clock = manualClock()
  const told: Told = { steps: [], errors: [] }
  const running: Loop = loop({
    clock,
    random: () => chance,
    step: async () => {
      told.steps.push(clock.monotonic())
      return step(told.steps.length)
    },
    onError: error => told.errors.push(error),
  })
  return { clock, told, running }
}

describe('a loop', () => {
  it('steps at once when started, then after each wait that the step asked for', async () => {
    const { clock, told, running } = story(nth => nth * 1_000)
    expect(told.steps).toEqual([])
    running.start()
    running.start()
    await clock.advance(6_000)
    expect(told.steps).toEqual([0, 1_000, 3_000, 6_000])
  })

  it('steps again straight away when the step asks for no wait', async () => {
    const { clock, told, running } = story(nth => (nth < 4 ? 0 : 60_000))
    running.start()
    await clock.advance(1)
    expect(told.steps).toHaveLength(4)
  })

  it('steps now when nudged, and counts its next wait from there', async () => {
    const { clock, told, running } = story(() => 1_000)
    running.start()
    await clock.advance(400)
    running.nudge()
    await clock.advance(1_000)
    expect(told.steps).toEqual([0, 400, 1_400])
  })

  it('nudged any number of times during a step makes one more step, after it', async () => {
    const first = gate<number>()
    const { clock, told, running } = story(nth => (nth === 1 ? first.passed : 60_000))
    running.start()
    running.nudge()
    running.nudge()
    await clock.advance(500)
    expect(told.steps).toEqual([0])
    first.open(60_000)
    await clock.advance(1)
    expect(told.steps).toEqual([0, 500])
  })

  it('nudged for later steps then, unless it would step earlier anyway', async () => {
    const { clock, told, running } = story(() => 1_000)
    running.start()
    await clock.advance(100)
    running.nudgeIn(5_000)
    running.nudgeIn(300)
    await clock.advance(1_300)
    expect(told.steps).toEqual([0, 400, 1_400])
  })

  it('pauses longer with each failure, up to ten seconds, and not at all after a success', async () => {
    const { clock, told, running } = story(nth => {
      if (nth <= 9) throw new Error(`failure ${nth}`)
      return 1_000
    })
    running.start()
    await clock.advance(60_000)
    const pauses = told.steps.slice(1).map((at, index) => at - (told.steps[index] as number))
    expect(pauses.slice(0, 10)).toEqual([100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000, 1_000])
    expect(told.errors).toHaveLength(9)
  })

  it('spreads its pauses, so that a fleet does not come back together (pitfall 6)', async () => {
    const { clock, told, running } = story(nth => {
      if (nth === 1) throw new Error('away')
      return 60_000
    }, 0)
    running.start()
    await clock.advance(50)
    expect(told.steps).toEqual([0, 50])
  })

  it('is not hurried by nudges while it fails', async () => {
    const { clock, told, running } = story(() => {
      throw new Error('away')
    })
    running.start()
    await clock.advance(10)
    running.nudge()
    running.nudgeIn(1)
    await clock.advance(80)
    expect(told.steps).toEqual([0])
  })

  it('stops when the running step has ended, and starts no other', async () => {
    const step = gate<number>()
    const { clock, told, running } = story(() => step.passed)
    running.start()
    let stopped = false
    const stopping = running.stop().then(() => {
      stopped = true
    })
    await clock.advance(10)
    expect(stopped).toBe(false)
    step.open(0)
    await stopping
    running.nudge()
    await clock.advance(60_000)
    expect(told.steps).toEqual([0])
    expect(clock.pending).toBe(0)
  })
})
