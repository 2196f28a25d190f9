// What people write after an option, checked: lengths of time, times, whole numbers, JSON.
import { InvalidArgumentError } from 'commander'
import { LIMITS } from '../domain/limits.js'

const UNITS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const
const LENGTH = /^(\d{1,12})(ms|s|m|h|d)$/

/** `500ms`, `30s`, `5m`, `2h`, `7d`, as milliseconds. */
export function lengthOfTime(text: string): number {
  const [, number, unit] = LENGTH.exec(text) ?? []
  const ms = text === '0' ? 0 : Number(number) * UNITS[unit as keyof typeof UNITS]
  if (!(ms <= LIMITS.delayMs)) throw new InvalidArgumentError('It must be a length of time: 500ms, 30s, 5m, 2h or 7d.')
  return ms
}

/** A time, as RFC 3339 has it; without a zone it is this machine's. */
export function time(text: string): string {
  const at = Date.parse(text)
  if (Number.isNaN(at) || !/^\d{4}-\d\d-\d\d/.test(text)) {
    throw new InvalidArgumentError('It must be a time such as 2026-01-31T12:00:00Z.')
  }
  return new Date(at).toISOString()
}

/** A time, or how long ago it was: resolved when the command runs. */
export function timeOrAgo(text: string): (now: number) => string {
  if (LENGTH.test(text)) {
    const ms = lengthOfTime(text)
    return now => new Date(now - ms).toISOString()
  }
  try {
    const at = time(text)
    return () => at
  } catch {
    throw new InvalidArgumentError('It must be a time such as 2026-01-31T12:00:00Z, or how long ago: 30m, 2h, 7d.')
  }
}

export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
    if (!(number >= least && number <= most)) {
      throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`)
    }
    return number
  }

export function jsonText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw new InvalidArgumentError(`It must be JSON, such as '{"to":"ada"}': ${(error as Error).message}.`)
  }
}

export const ids = (text: string, before: readonly string[] = []): string[] => [...before, id(text)]

export function id(text: string): string {
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)) {
    throw new InvalidArgumentError('It must be an id, as `ls` shows it: 01981234-5678-7abc-8def-0123456789ab.')
  }
  return text.toLowerCase()
}

export const port = wholeNumber(0, 65_535)

/** A length of time, or milliseconds. */
export const graceTime = (text: string): number => (/^\d{1,9}$/.test(text) ? Number(text) : lengthOfTime(text))

/** `mail,billing` */
export function names(text: string): string[] {
  const given = text.split(',').map(name => name.trim())
  if (given.some(name => name === '')) throw new InvalidArgumentError('It must be names with commas between them.')
  return [...new Set(given)]
}
