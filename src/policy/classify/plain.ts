// Errors that carry a message and nothing else: what most code throws by itself, and in an outage the same one thousands of times. There is
// nothing more in them to look for, and what they say depends on their type and message alone, so that it is worked out once.
import { types } from 'node:util'
import { attempt } from '../read.js'
import { remember } from '../remember.js'

/** A class of somebody's own may have more to say, by a getter that no instance shows. */
const BUILT_IN = new Set<unknown>(
  [Error, TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError].map(({ prototype }) => prototype),
)
const USUAL_KEYS: ReadonlySet<PropertyKey> = new Set(['stack', 'message', 'name'])

export const isPlain = (error: unknown): boolean => attempt(() => hasOnlyTheUsual(error)) ?? false

function hasOnlyTheUsual(error: unknown): boolean {
  // A proxy may have more to say than it lists.
  if (!BUILT_IN.has(Object.getPrototypeOf(error)) || types.isProxy(error)) return false
  for (const key of Reflect.ownKeys(error as object)) if (!USUAL_KEYS.has(key)) return false
  return true
}

/** Messages that differ by an address or a host are hundreds in an outage; longer ones are seldom the same. */
const KNOWN = 1_000
const LONGEST = 300

/** Answers by what `work` made of the same type and message before. */
export class ByMessage<Value> {
  readonly #known = new Map<string, Value>()

  of(type: string, message: string, work: () => Value): Value {
    if (message.length > LONGEST) return work()
    const key = `${type}\0${message}`
    return this.#known.get(key) ?? remember(this.#known, KNOWN, key, work())
  }
}
