// The few statistics the bench needs. Of an empty list every one is undefined.

/** @param {readonly number[]} values @param {number} share from 0 to 1 @returns {number | undefined} */
export function percentile(values, share) {
  const sorted = [...values].sort((a, b) => a - b)
  if (sorted.length === 0) return undefined
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)]
}

/** The middle one; of an even number, the mean of the two in the middle. @param {readonly number[]} values */
export function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  const upper = sorted[Math.floor(sorted.length / 2)]
  const lower = sorted[Math.ceil(sorted.length / 2) - 1]
  return upper === undefined || lower === undefined ? undefined : (lower + upper) / 2
}

/** @param {readonly number[]} values */
export const mean = values => (values.length === 0 ? undefined : values.reduce((a, b) => a + b, 0) / values.length)

/** @param {readonly number[]} values @returns {{ min: number, max: number } | undefined} */
export const spread = values =>
  values.length === 0 ? undefined : { min: Math.min(...values), max: Math.max(...values) }
