// What one source found in one error: a kind, and why, in words.
import type { Kind } from '../../domain/failure.js'
import type { Facts } from './facts.js'

export interface Evidence {
  readonly kind: Kind
  readonly because: string
  readonly retryAfterMs?: number
  readonly service?: string
}

/** One way to judge one error, apart from its causes. Undefined: nothing to say. */
export type Source = (facts: Facts) => Evidence | undefined

/** A table written the way it is read, kind by kind, as a map from each word to its kind. */
export function byWord(table: Partial<Record<Kind, string>>): ReadonlyMap<string, Kind> {
  const map = new Map<string, Kind>()
  for (const [kind, words] of Object.entries(table))
    for (const word of words.split(/\s+/)) if (word !== '') map.set(word, kind as Kind)
  return map
}
