import { expect, it } from 'vitest'
import { manualClock } from '../../src/testing/manual-clock.js'
import { Echo } from '../../src/transport/transports/postgres-echo.js'

function anEcho() {
  const clock = manualClock()
  const world = { said: 0, hears: true, fails: false }
  const echo: Echo = new Echo(clock, async () => {
    if (world.fails) throw new Error('no connection')
    world.said += 1
    if (world.hears) echo.heard()
  })
  return { clock, world, echo }
}

it('comes to whoever hears, however often it is asked for', async () => {
  const { echo } = anEcho()
  expect(await Promise.all([echo.comes(), echo.comes()])).toEqual([true, true])
  expect(await echo.comes()).toBe(true)
})

it('does not come to whoever does not, and is not waited for any longer', async () => {
  const { clock, world, echo } = anEcho()
  world.hears = false
  const coming = echo.comes()
  await clock.advance(1_000)
  expect(await coming).toBe(false)
  echo.repeat()
  expect(world.said).toBe(1)
  expect(clock.pending).toBe(0)
})

it('is called for again when it can be heard', async () => {
  const { clock, world, echo } = anEcho()
  world.hears = false
  const coming = echo.comes()
  await clock.advance(500)
  world.hears = true
  echo.repeat()
  expect(await coming).toBe(true)
})

it('fails if nothing can be said', async () => {
  const { world, echo } = anEcho()
  world.fails = true
  await expect(echo.comes()).rejects.toThrow('no connection')
})
