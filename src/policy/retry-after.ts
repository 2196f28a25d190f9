// How long the other side asked us to wait, read from whatever the error carries. What it says beats the backoff.
import { prop } from './read.js'
import { type Headers, headersOf } from './retry-after/headers.js'
import { parseHttpDate } from './retry-after/http-date.js'
import { millisecondsWait, numberWait, wait, waitMs } from './retry-after/wait.js'

type Read = (text: string, now: number | undefined) => number | undefined

/** A plain order to wait: always obeyed. */
const ORDERS: readonly (readonly [string, Read])[] = [
  ['retry-after-ms', millisecondsWait],
  ['retry-after', wait],
]

/** When the window starts anew. Many servers send these on every answer, so they count only when it is used up. */
const RESETS = [
  'x-ratelimit-reset-after',
  'ratelimit-reset',
  'x-ratelimit-reset',
  'x-rate-limit-reset',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
]

const REMAINING = [
  'x-ratelimit-remaining',
  'ratelimit-remaining',
  'x-rate-limit-remaining',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
]

const LIMITING_STATUSES = [403, 429, 503]

/**
 * Milliseconds to wait, or undefined if nothing was asked. Times and dates are measured against `now`; without
 * it, against the answer's own `Date` header. `status` tells whether reset headers speak about this failure.
 */
export function readRetryAfter(error: unknown, now?: number, status?: number): number | undefined {
  const own = ownWait(error, now)
  if (own !== undefined) return own
  const headers = headersOf(error)
  if (headers.size === 0) return undefined
  const reference = now ?? parseHttpDate(headers.get('date') ?? '')
  for (const [name, read] of ORDERS) {
    const text = headers.get(name)
    const ms = text === undefined ? undefined : read(text, reference)
    if (ms !== undefined) return ms
  }
  if (!windowUsedUp(headers, status)) return undefined
  for (const name of RESETS) {
    const text = headers.get(name)
    const ms = text === undefined ? undefined : wait(text, reference)
    if (ms !== undefined) return ms
  }
  return undefined
}

/** True if the answer itself says that no request is left. */
export const nothingRemains = (headers: Headers): boolean => REMAINING.some(name => headers.get(name) === '0')

function windowUsedUp(headers: Headers, status: number | undefined): boolean {
  if (status === 429 || nothingRemains(headers)) return true
  if (REMAINING.some(name => headers.has(name))) return false
  return status === undefined || LIMITING_STATUSES.includes(status)
}

/** A property of the error itself: `retryAfterMs`, or `retryAfter` / `retry_after` as the header would have it. */
function ownWait(error: unknown, now: number | undefined): number | undefined {
  const ms = prop(error, 'retryAfterMs')
  if (typeof ms === 'number' && Number.isFinite(ms)) return waitMs(ms)
  for (const key of ['retryAfter', 'retry_after']) {
    const value = prop(error, key)
    const found =
      typeof value === 'number' && Number.isFinite(value)
        ? numberWait(value, now)
        : typeof value === 'string'
          ? wait(value.slice(0, 200).trim(), now)
          : undefined
    if (found !== undefined) return found
  }
  return undefined
}
