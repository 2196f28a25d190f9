// The ledger's time by our own stopwatch: by the quickest of the latest answers.
import { describe, expect, it } from 'vitest'
import { LedgerClock } from '../../src/runtime/ledger-clock.js'

describe('LedgerClock', () => {
  it('goes by the answer that took least', () => {
    const clock = new LedgerClock()
    clock.compare(1_030, 1_000_000)
    clock.compare(1_105, 1_000_100)
    clock.compare(1_280, 1_000_200)
    expect(clock.offset).toBe(1_105 - 1_000_100)
  })

  it('follows a clock that was set back, in a while', () => {
    const clock = new LedgerClock()
    clock.compare(0, 1_000_000)
    for (let now = 1_000; now <= 25_000; now += 1_000) clock.compare(now, 1_000_000 + now - 5_000)
    expect(clock.offset).toBe(5_000 - 1_000_000)
  })
})
