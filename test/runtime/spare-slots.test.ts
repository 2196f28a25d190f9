// Slots kept ready for jobs that will come: each is used once and in its time, and a limit that might be reached has none.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { paceOf } from '../../src/policy/rate.js'
import { SpareSlots } from '../../src/runtime/spare-slots.js'

const KEEP_MS = 60

/** The schedule of one key, as the ledger keeps it; our stopwatch shows the ledger's time. */
function schedule(settings: { limit: number; intervalMs: number; burst: number }) {
  const { spacingMs, savedMs, lateMs } = paceOf(settings)
  let nextFree = 0
  return {
    acquire(now: number, wanted: number) {
      const firstAt = Math.max(nextFree, now - savedMs)
      const given = Math.max(0, Math.min(Math.floor((now + 250 - firstAt) / spacingMs) + 1, wanted))
      nextFree = firstAt + given * spacingMs
      const turnAt = nextFree
      return { name: 'api', key: '', now, firstAt, spacingMs, lateMs, given, nextAt: nextFree, turnAt }
    },
  }
}

const BIG = { limit: 1_000_000, intervalMs: 1_000, burst: 1_000_000 }

function learned(settings = BIG, wait = 100) {
  const ledger = schedule(settings)
  const spares = new SpareSlots(KEEP_MS)
  const ask = (now: number, waiting: number) => {
    const answer = ledger.acquire(now, waiting + spares.wanted('', waiting, now))
    spares.learn('', answer, Math.min(waiting, answer.given), 0, now)
    return answer
  }
  ask(10_000, wait)
  ask(10_001, wait)
  return { spares, ask }
}

describe('spare slots', () => {
  it('are there once a limit was seen to have plenty', () => {
    const spares = new SpareSlots(KEEP_MS)
    expect(spares.has('')).toBe(false)
    expect(spares.take('', 0)).toBe(false)
    expect(learned().spares.has('')).toBe(true)
    expect(learned().spares.take('', 10_002)).toBe(true)
  })

  it('are forgotten after a moment', () => {
    expect(learned().spares.take('', 10_001 + KEEP_MS)).toBe(false)
  })

  it('are not taken from a limit that might be reached, nor for a few jobs', () => {
    expect(learned({ limit: 100, intervalMs: 1_000, burst: 100 }).spares.has('')).toBe(false)
    expect(learned({ limit: 1_000, intervalMs: 1_000, burst: 1 }).spares.has('')).toBe(false)
    expect(learned(BIG, 3).spares.has('')).toBe(false)
  })

  it('are asked for again before there are none left', () => {
    const { spares } = learned()
    const halfWay = 10_001 + KEEP_MS / 2 + 1
    for (let taken = 0; taken < 50; taken += 1) spares.take('', halfWay)
    expect(spares.low(halfWay)).toEqual([''])
    expect(spares.low(halfWay)).toEqual([])
  })

  it('never let more start than the limit allows in any window', () => {
    const settings = { limit: 2_000, intervalMs: 1_000, burst: 2_000 }
    const { spacingMs } = paceOf(settings)
    const steps = fc.array(
      fc.record({ passMs: fc.integer({ min: 0, max: 80 }), jobs: fc.integer({ min: 0, max: 300 }) }),
      {
        minLength: 20,
        maxLength: 120,
      },
    )
    fc.assert(
      fc.property(steps, run => {
        const ledger = schedule(settings)
        const spares = new SpareSlots(KEEP_MS)
        const starts: number[] = []
        let now = 100_000
        for (const { passMs, jobs } of run) {
          now += passMs
          let waiting = 0
          for (let job = 0; job < jobs; job += 1) {
            if (spares.take('', now)) starts.push(now)
            else waiting += 1
          }
          const extra = spares.wanted('', waiting, now)
          if (waiting + extra === 0) continue
          const answer = ledger.acquire(now, waiting + extra)
          const used = Math.min(waiting, answer.given)
          spares.learn('', answer, used, 0, now)
          // Those that waited start at their slots; the ones of the past at once.
          for (let index = 0; index < used; index += 1) starts.push(Math.max(now, answer.firstAt + index * spacingMs))
        }
        starts.sort((a, b) => a - b)
        let over = Number.NEGATIVE_INFINITY
        for (let from = 0; from < starts.length; from += 37) {
          for (let to = from; to < starts.length; to += 41) {
            const windowMs = (starts[to] as number) - (starts[from] as number)
            over = Math.max(over, to - from + 1 - (settings.burst + windowMs / spacingMs + 1))
          }
        }
        expect(over).toBeLessThanOrEqual(0)
      }),
      { numRuns: 60 },
    )
  })
})
