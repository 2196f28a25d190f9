// Lengths of time, shares and counts in words.
import { expect, it } from 'vitest'
import { count, counted, duration, percent } from '../../src/policy/say.js'

it.each([
  [-5, '0 s'],
  [0, '0 s'],
  [250, '250 ms'],
  [1_500, '1.5 s'],
  [59_000, '59 s'],
  [60_000, '1 min'],
  [5_400_000, '1.5 h'],
  [86_400_000, '1 day'],
  [40 * 86_400_000, '40 days'],
])('%d ms is %s', (ms, said) => {
  expect(duration(ms)).toBe(said)
})

it.each([
  [0, '0 %'],
  [0.0004, 'less than 0.1 %'],
  [0.092, '9.2 %'],
  [0.9999, 'more than 99.9 %'],
  [1, '100 %'],
])('a share of %d is %s', (share, said) => {
  expect(percent(share)).toBe(said)
})

it('counts are easy to read', () => {
  expect([count(7), count(1_204), count(1_000_000)]).toEqual(['7', '1,204', '1,000,000'])
  expect([counted(1, 'job'), counted(2, 'job'), counted(2, 'try', 'tries')]).toEqual(['1 job', '2 jobs', '2 tries'])
})
