// Ids of jobs: UUIDs of version 7 that nobody else has, and that grow within one process.
import { describe, expect, it } from 'vitest'
import { isJobId, newId } from '../../src/domain/ids.js'

const VERSION_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const at = (now: number) => ({ now: () => now }) as Parameters<typeof newId>[0]
const timeOf = (id: string) => Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16)

describe('ids', () => {
  it('are UUIDs of version 7, each one new', () => {
    const ids = Array.from({ length: 20_000 }, () => newId())
    expect(ids.filter(id => !VERSION_7.test(id) || !isJobId(id))).toEqual([])
    expect(new Set(ids).size).toBe(ids.length)
  })

  it('grow, also when thousands are made in one millisecond', () => {
    const now = Date.now() + 60_000
    const ids = Array.from({ length: 20_000 }, () => newId(at(now)))
    expect(ids.toSorted()).toEqual(ids)
    expect(timeOf(ids[0] as string)).toBe(now)
    expect(timeOf(ids.at(-1) as string) - now, 'at most 4,096 a millisecond').toBeLessThan(20)
  })

  it('go on growing where the clock is set back a little, and follow it where it is set back by much', () => {
    const now = Date.now() + 120_000
    const first = newId(at(now))
    const second = newId(at(now - 500))
    expect([second, first].toSorted()).toEqual([first, second])
    expect(timeOf(newId(at(now - 60_000)))).toBe(now - 60_000)
  })

  it('hold fractions and the beginning of time', () => {
    expect(timeOf(newId(at(1_500.75)))).toBe(1_500)
    expect(timeOf(newId(at(0)))).toBe(0)
  })

  it('differ in all that is random', () => {
    const ids = Array.from({ length: 500 }, () => newId())
    for (let place = 20; place < 36; place += 1) {
      const digits = new Set(ids.map(id => id[place]))
      expect(digits.size, `place ${place}`).toBe(place === 23 ? 1 : 16)
    }
  })
})
