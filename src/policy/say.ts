// How lengths of time, shares and counts are said to a person.

const UNITS = [
  ['day', 86_400_000],
  ['h', 3_600_000],
  ['min', 60_000],
  ['s', 1_000],
] as const

/** `45 s`, `3 min`, `2 h`, `5 days`: one unit, rounded. */
export function duration(ms: number): string {
  const of = Math.max(0, ms)
  for (const [unit, size] of UNITS) {
    if (of < size) continue
    const value = of / size
    const rounded = value < 10 ? Math.round(value * 10) / 10 : Math.round(value)
    return unit === 'day' ? `${rounded} ${rounded === 1 ? 'day' : 'days'}` : `${rounded} ${unit}`
  }
  return of < 1 ? '0 s' : `${Math.round(of)} ms`
}

/** `9.2 %`; what is not nothing is not said to be 0, nor what is not all to be 100. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return 'less than 0.1 %'
  if (share < 1 && share > 0.999) return 'more than 99.9 %'
  return `${Math.round(share * 1_000) / 10} %`
}

/** `1,204`. */
export const count = (value: number): string => String(Math.round(value)).replace(/\B(?=(?:\d{3})+$)/g, ',')

/** `1 job`, `2 jobs`. */
export const counted = (value: number, one: string, many = `${one}s`): string =>
  `${count(value)} ${value === 1 ? one : many}`

/** `850 ms`, `12.5 s`: how a decision says its delay. */
export const shortTime = (ms: number): string =>
  ms < 1_000 ? `${Math.round(ms)} ms` : `${Math.round(ms / 100) / 10} s`

export const times = (count: number): string => (count === 1 ? 'once' : `${count} times`)
