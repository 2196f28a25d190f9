// The line of a rate limit and key, as one worker sees it: who of its jobs gets slots, and in which order.
import { heldByRate, type RateRequest } from '../ledger/rate-limit.js'
import { identityOf } from './attempt.js'
import { decodePayload } from './payload.js'
import { inWords, type RateRule, rateKey } from './rate-rule.js'
import type { Held } from './slots.js'

/** Jobs of one limit and key, in the order in which they get slots: those that were let go first. */
export interface Line {
  readonly rule: RateRule
  readonly key: string
  readonly released: Held[]
  readonly fresh: Held[]
}

/** Lines by the name that held jobs have in the ledger. */
export type Lines = Map<string, Line>

export const nameOf = (rule: RateRule, key: string): string => heldByRate(rule.name, key)

export function lineOf(lines: Lines, rule: RateRule, key: string): Line {
  const name = nameOf(rule, key)
  const known = lines.get(name)
  if (known) return known
  const line: Line = { rule, key, released: [], fresh: [] }
  lines.set(name, line)
  return line
}

/** What this line asks for: slots for its jobs, and so many for jobs that will come. */
export const requestOf = ({ rule, key, released, fresh }: Line, spare: number): RateRequest => ({
  name: rule.name,
  key,
  pace: rule.pace,
  released: released.length,
  fresh: fresh.length + spare,
})

/** Undefined: this job is not limited. `onError` hears of a key function that fails. */
export async function keyOf(
  { job, lane }: Held,
  rule: RateRule,
  onError: (error: unknown) => void,
): Promise<string | undefined> {
  if (typeof rule.key !== 'function') return rateKey(rule, job)
  let payload: unknown
  try {
    payload = await decodePayload(lane.definition, job.payloadText)
  } catch {
    return undefined // its attempt fails for the same reason, in the usual way
  }
  try {
    return rateKey(rule, identityOf(job), payload)
  } catch (error) {
    onError(error)
    return '' // whatever the key should have been, the limit holds
  }
}

export const overItsRate = ({ rule, key }: Line): string => {
  const { name, key: named, settings } = rule
  const whose = key === '' ? '' : ` for ${typeof named === 'string' ? `${named} ` : ''}${JSON.stringify(key)}`
  return `over its rate limit ${name}${whose} (${inWords(settings)})`
}
