// How the bench prints: figures a person can compare at a glance.
import { expect, test } from 'vitest'
import { shortNumber, table } from '../../bench/harness/table.mjs'

test.each([
  [0.1234, '0.12'],
  [12.345, '12.3'],
  [123.4, '123'],
  [1234.5, '1235'],
  [12_345, '12.3k'],
  [999_600, '1.00M'],
  [1_234_567, '1.23M'],
  [undefined, '–'],
])('%s is shown as %s', (value, shown) => {
  expect(shortNumber(value)).toBe(shown)
})

test('columns are as wide as their widest cell, figures to the right', () => {
  expect(
    table(
      ['', 'jobs/s'],
      [
        ['redrive', '9.1k'],
        ['a', '–'],
      ],
    ).split('\n'),
  ).toEqual(['         jobs/s', '───────  ──────', 'redrive    9.1k', 'a             –'])
})
