// The retry budget: a share of first attempts with a floor, and a schedule that spreads what is over it.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BudgetRate, budgetRate, budgetSpent, budgetWaitMs, EMPTY_BUDGET } from '../../src/policy/budget.js'
import { DEFAULT_BUDGET } from '../../src/policy/service-settings.js'

const counts = (firstAttempts: number, retries = 0) => ({ firstAttempts, retries, succeeded: 0, failed: 0 })

/** When each of these failures, in their order, is retried by a schedule. */
function retriesAt(failures: readonly number[], rate: BudgetRate): number[] {
  let budget = EMPTY_BUDGET
  return failures.map(at => {
    const due = at + budgetWaitMs(budget, rate, at)
    budget = budgetSpent(budget, rate, at)
    return due
  })
}

describe('the budget', () => {
  it('is a share of the first attempts of the whole fleet, by default a fifth', () => {
    expect(budgetRate(DEFAULT_BUDGET, counts(10_000), counts(10_000), 1).retries).toBe(2_000)
  })

  it('has a floor for services with little to do', () => {
    expect(budgetRate(DEFAULT_BUDGET, counts(3), counts(3), 1).retries).toBe(300)
  })

  it('is shared by how much each process does, and none goes without', () => {
    const fleet = counts(10_000, 2_000)
    const shares = [counts(5_000, 1_000), counts(4_000, 800), counts(1_000, 200)].map(
      mine => budgetRate(DEFAULT_BUDGET, fleet, mine, 3).retries,
    )
    expect(shares).toEqual([1_000, 800, 2_000 / 6])
    expect(budgetRate(DEFAULT_BUDGET, fleet, counts(0), 4).retries).toBe(250)
  })
})

describe('the schedule', () => {
  const rate = { retries: 100, windowMs: 10_000 }

  it('lets a few through at once and spreads the rest', () => {
    const waits = retriesAt(Array<number>(50).fill(0), rate)
    expect(waits.filter(at => at === 0)).toHaveLength(11)
    expect(waits.at(-1)).toBe(3_900)
  })

  it('holds nothing while failures come slower than the budget', () => {
    const failures = Array.from({ length: 1_000 }, (_, index) => index * 100)
    expect(retriesAt(failures, rate)).toEqual(failures)
  })

  it('never lets more than the budget and its burst into any window, drops nothing, and keeps the order', () => {
    const gaps = fc.array(fc.integer({ min: 0, max: 500 }), { minLength: 1, maxLength: 400 })
    fc.assert(
      fc.property(gaps, fc.integer({ min: 5, max: 500 }), (between, retries) => {
        let at = 0
        const failures = between.map(gap => (at += gap))
        const due = retriesAt(failures, { retries, windowMs: 10_000 })
        expect(due).toHaveLength(failures.length)
        expect(due.every((time, index) => index === 0 || time >= (due[index - 1] as number))).toBe(true)
        const most = retries + Math.max(1, retries * 0.1) + 1
        for (const [index, from] of due.entries()) {
          const within = due.slice(index).filter(time => time < from + 10_000).length
          expect(within).toBeLessThanOrEqual(Math.ceil(most))
        }
      }),
    )
  })
})
