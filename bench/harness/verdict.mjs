// Ours against a target, in words and as pass or fail. Without figures on both sides there is no verdict.
import { shortNumber } from './table.mjs'

/**
 * @typedef {(entrant: string, column: string) => number | undefined} Medians
 * @typedef {{ target: string, ours: string, against: string, ratio?: number, passed: boolean | undefined }} Verdict
 */

/**
 * The best of some, by name.
 * @param {Medians} medians
 * @param {readonly { key: string, label: string }[]} setups
 * @param {string} column
 * @param {'most' | 'least'} wanted
 */
export function best(medians, setups, column, wanted) {
  const sign = wanted === 'most' ? -1 : 1
  const [first] = setups
    .map(({ key, label }) => ({ label, value: medians(key, column) }))
    .filter(({ value }) => value !== undefined)
    .sort((a, b) => sign * (Number(a.value) - Number(b.value)))
  return first
}

/**
 * @param {string} target
 * @param {number | undefined} ours
 * @param {{ label: string, value: number | undefined } | undefined} against
 * @param {number} times
 * @returns {Verdict}
 */
export function atLeast(target, ours, against, times) {
  const ratio = ours === undefined || !against?.value ? undefined : ours / against.value
  return verdict(target, ours, against, ratio, ratio === undefined ? undefined : ratio >= times)
}

/** @type {typeof atLeast} */
export function atMost(target, ours, against, times) {
  const ratio = ours === undefined || !against?.value ? undefined : ours / against.value
  return verdict(target, ours, against, ratio, ratio === undefined ? undefined : ratio <= times)
}

/** @param {string} target @param {number | undefined} ours @param {number} limit @param {string} [unit] @returns {Verdict} */
export const noMoreThan = (target, ours, limit, unit = '') => ({
  target,
  ours: ours === undefined ? '–' : `${shortNumber(ours)}${unit}`,
  against: `limit ${shortNumber(limit)}${unit}`,
  passed: ours === undefined ? undefined : ours <= limit,
})

/** @param {string} target @param {number | undefined} ours @param {number} limit @param {string} [unit] @returns {Verdict} */
export const noLessThan = (target, ours, limit, unit = '') => ({
  target,
  ours: ours === undefined ? '–' : `${shortNumber(ours)}${unit}`,
  against: `at least ${shortNumber(limit)}${unit}`,
  passed: ours === undefined ? undefined : ours >= limit,
})

/**
 * @param {string} target
 * @param {number | undefined} ours
 * @param {{ label: string, value: number | undefined } | undefined} against
 * @param {number | undefined} ratio
 * @param {boolean | undefined} passed
 * @returns {Verdict}
 */
const verdict = (target, ours, against, ratio, passed) => ({
  target,
  ours: shortNumber(ours),
  against: against ? `${against.label} ${shortNumber(against.value)}` : '–',
  ...(ratio !== undefined && { ratio }),
  passed,
})
