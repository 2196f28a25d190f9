// One header's value, as a wait in milliseconds. Undefined for what says nothing; 0 for a time already past.
import { LIMITS } from '../../domain/limits.js'
import { parseHttpDate } from './http-date.js'

/** Numbers above this are a time since 1970: nobody asks for a wait of 30 years. */
const EPOCH_SECONDS_FROM = 1e9
const EPOCH_MS_FROM = 1e11

const NUMBER = /^[+-]?\d{1,20}(?:\.\d{1,20})?$/
const DURATION_PART = /^(\d{1,12}(?:\.\d{1,12})?)(ms|h|m|s|d)/
const UNIT_MS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

export function waitMs(ms: number): number | undefined {
  return Number.isNaN(ms) ? undefined : Math.min(Math.max(0, ms), LIMITS.delayMs)
}

export function millisecondsWait(text: string): number | undefined {
  return NUMBER.test(text) ? waitMs(Number(text)) : undefined
}

/** Seconds, a time since 1970 (told apart by size), a date, or a duration such as `1m30s`. */
export function wait(text: string, now: number | undefined): number | undefined {
  if (NUMBER.test(text)) return numberWait(Number(text), now)
  const date = parseHttpDate(text)
  if (date === undefined) return durationWait(text)
  return now === undefined ? undefined : waitMs(date - now)
}

export function numberWait(value: number, now: number | undefined): number | undefined {
  if (!(value >= EPOCH_SECONDS_FROM)) return waitMs(value * 1_000)
  if (now === undefined || value === Number.POSITIVE_INFINITY) return undefined
  return waitMs((value >= EPOCH_MS_FROM ? value : value * 1_000) - now)
}

/** `250ms`, `1m30s`, `6h`: every part must fit, or nothing does. */
function durationWait(text: string): number | undefined {
  let rest = text.toLowerCase()
  let total = 0
  if (rest === '') return undefined
  while (rest !== '') {
    const part = DURATION_PART.exec(rest)
    if (!part) return undefined
    total += Number(part[1]) * (UNIT_MS[part[2] ?? ''] ?? 0)
    rest = rest.slice(part[0].length)
  }
  return waitMs(total)
}
