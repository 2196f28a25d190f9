// The bench's own arithmetic: a wrong median would make every claim wrong.
import { expect, test } from 'vitest'
import { median, percentile, spread } from '../../bench/harness/statistics.mjs'

test('the median is the one in the middle, or between the two in the middle', () => {
  expect(median([3, 1, 2])).toBe(2)
  expect(median([4, 1, 2, 3])).toBe(2.5)
  expect(median([])).toBeUndefined()
})

test('a percentile is a value that was measured', () => {
  const values = Array.from({ length: 100 }, (_, index) => 100 - index)
  expect(percentile(values, 0.5)).toBe(50)
  expect(percentile(values, 0.99)).toBe(99)
  expect(percentile([7], 0.99)).toBe(7)
})

test('the spread is the least and the most', () => {
  expect(spread([2, 3, 1])).toEqual({ min: 1, max: 3 })
})
