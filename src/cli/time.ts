// Times as a person reads them: how long ago in a table, the moment itself in a story.

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const

/** `3m`, `2d 4h`, `800ms`: the two largest units, none of them 0. */
export function duration(ms: number): string {
  const whole = Math.max(0, Math.round(ms))
  if (whole < 1_000) return `${whole}ms`
  const first = UNITS.findIndex(([, size]) => whole >= size)
  const parts: string[] = []
  let rest = whole
  for (const [name, size] of UNITS.slice(first, first + 2)) {
    const count = Math.floor(rest / size)
    rest -= count * size
    if (count > 0) parts.push(`${count}${name}`)
  }
  return parts.join(' ')
}

/** How long ago a time was, in one unit, by this machine's clock; one that is a little ahead of it is now. */
export function ago(time: string, now: number): string {
  const ms = Math.max(0, now - Date.parse(time))
  const [name, size] = UNITS.find(([, unit]) => ms >= unit) ?? ['s', 1_000]
  return `${Math.floor(ms / size)}${name}`
}

/** `2026-11-15 14:36:21Z (3m ago)` */
export function moment(time: string, now: number): string {
  const at = Date.parse(time)
  const shown = `${new Date(at).toISOString().slice(0, 19).replace('T', ' ')}Z`
  return at > now ? `${shown} (in ${duration(at - now)})` : `${shown} (${ago(time, now)} ago)`
}
