// How long a failed operation waits before it is tried again: what the operation itself says, else what the settings say
// for operations of its name, else what they say for all.
import { bad } from './names.js'

export interface RetryDelays {
  /** For operations of which nothing else is said. */
  readonly defaultMs: number
  /** By the operation's name. */
  readonly byOperationMs: Readonly<Record<string, number>>
}

export const DEFAULT_DELAYS: RetryDelays = {
  defaultMs: 5_000,
  byOperationMs: { create: 10_000, get: 2_000, delete: 5_000 },
}

export const LONGEST_DELAY_MS = 86_400_000

export function checkDelayMs(what: string, delayMs: unknown): void {
  if (!(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= LONGEST_DELAY_MS)) {
    throw bad(what, String(delayMs), `milliseconds from 0 to ${LONGEST_DELAY_MS}`)
  }
}

export function checkDelays({ defaultMs, byOperationMs }: RetryDelays): RetryDelays {
  checkDelayMs('retryDelays.defaultMs', defaultMs)
  for (const [name, delayMs] of Object.entries(byOperationMs))
    checkDelayMs(`retryDelays.byOperationMs.${name}`, delayMs)
  return { defaultMs, byOperationMs }
}

export const delayOf = ({ defaultMs, byOperationMs }: RetryDelays, operation: string): number =>
  (Object.hasOwn(byOperationMs, operation) ? byOperationMs[operation] : undefined) ?? defaultMs
