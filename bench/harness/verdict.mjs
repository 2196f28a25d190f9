// Ours against a target, in words and as pass or fail. Without figures on both sides there is no verdict.
import { shortNumber } from './table.mjs'

/**
 * @typedef {(entrant: string, column: string) => number | undefined} Medians
 * `bare`: the ratio that statements with nothing around them reach (contestants/bare.mjs).
 * @typedef {{ target: string, ours: string, against: string, ratio?: number, bare?: number, passed: boolean | undefined }} Verdict
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
 * @param {number} [bare] what bare statements reach
 * @returns {Verdict}
 */
export const atLeast = (target, ours, against, times, bare) =>
  verdict(target, ours, against, bare, ratio => ratio >= times)

/** @type {typeof atLeast} */
export const atMost = (target, ours, against, times, bare) =>
  verdict(target, ours, against, bare, ratio => ratio <= times)

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
 * @param {number | undefined} bare
 * @param {(ratio: number) => boolean} passes
 * @returns {Verdict}
 */
function verdict(target, ours, against, bare, passes) {
  /** @param {number | undefined} value */
  const toThem = value => (value === undefined || !against?.value ? undefined : value / against.value)
  const ratio = toThem(ours)
  const ofBare = toThem(bare)
  return {
    target,
    ours: shortNumber(ours),
    against: against ? `${against.label} ${shortNumber(against.value)}` : '–',
    ...(ratio !== undefined && { ratio }),
    ...(ofBare !== undefined && { bare: ofBare }),
    passed: ratio === undefined ? undefined : passes(ratio),
  }
}
