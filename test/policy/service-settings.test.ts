// Settings of services: what the code says, what a person set, and what is refused.
import { describe, expect, it } from 'vitest'
import { DEFAULT_BREAKER, DEFAULT_BUDGET, effectiveService, parseService } from '../../src/policy/service-settings.js'

describe('settings of a service', () => {
  it('start from the defaults; what a person set beats the code, setting by setting', () => {
    expect(effectiveService()).toEqual({ breaker: DEFAULT_BREAKER, budget: DEFAULT_BUDGET })
    const code = { breaker: { openMs: 1_000, probes: 5 }, budget: { share: 0.5 } }
    const { breaker, budget } = effectiveService(code, { breaker: { openMs: 9_000 } })
    expect(breaker).toMatchObject({ openMs: 9_000, probes: 5, probesToClose: 2 })
    expect(budget.share).toBe(0.5)
  })

  it('never want more successes than there are probes', () => {
    expect(effectiveService({ breaker: { probes: 1 } }).breaker.probesToClose).toBe(1)
  })

  it.each([
    [{ breaker: { probes: 0 } }, 'settings.breaker.probes is 0; it must be a whole number from 1 to 1000'],
    [{ breaker: { failureRate: 2 } }, 'settings.breaker.failureRate is 2; it must be a number from 0.01 to 1'],
    [{ breaker: { kinds: ['odd'] } }, 'settings.breaker.kinds is odd; it must be a list of some of transient'],
    [{ breaker: { shadow: 1 } }, 'settings.breaker.shadow is 1; it must be true or false'],
    [{ breaker: { probes: 2, probesToClose: 3 } }, 'settings.breaker.probesToClose is 3; it must be at most'],
    [{ breaker: { opens: 1 } }, 'A key of settings.breaker is "opens"; it must be one of enabled, shadow'],
    [{ budget: { share: -1 } }, 'settings.budget.share is -1; it must be a number from 0 to 10'],
    [{ circuit: {} }, 'A key of settings is "circuit"; it must be one of breaker, budget'],
    [null, 'settings is null; it must be an object with any of breaker, budget'],
  ])('refuse %j', (value, message) => {
    expect(() => parseService(value, 'settings')).toThrow(message)
  })
})
