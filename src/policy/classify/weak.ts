// Errors that only tell that something was given up, or that fetch failed: whatever else the chain says, in whatever
// tier, says more. `sleep(…, { signal })` throws an AbortError whose cause is the reason of the abort.
import type { Source } from './evidence.js'
import type { Facts } from './facts.js'

const GIVEN_UP_TYPES = new Set(['AbortError', 'CanceledError', 'CancelledError'])
const GIVEN_UP_CODES = new Set(['ABORT_ERR', 'ERR_CANCELED', 'UND_ERR_ABORT', 'UND_ERR_ABORTED'])

/** What fetch throws as a TypeError when the network failed, in Node and elsewhere. */
const FETCH_FAILED = new Set(['fetch failed', 'terminated', 'Failed to fetch', 'Load failed', 'network error'])

const isGivenUp = ({ type, code }: Facts): boolean =>
  GIVEN_UP_TYPES.has(type) || (code !== undefined && GIVEN_UP_CODES.has(code))

const isFetchFailed = ({ type, message }: Facts): boolean => type === 'TypeError' && FETCH_FAILED.has(message)

/** True for what the other sources must leave to this one. */
export const isWeak = (facts: Facts): boolean => isGivenUp(facts) || isFetchFailed(facts)

export const weak: Source = facts => {
  if (isFetchFailed(facts)) return { kind: 'network', because: `TypeError: ${facts.message}` }
  return isGivenUp(facts) ? { kind: 'transient', because: `${facts.type}: given up before it ended` } : undefined
}
