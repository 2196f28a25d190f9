// The headers of the answer that an error carries, whichever client made it: fetch, undici, axios, got, AWS SDK.
import { attempt, isObject, items, prop } from '../read.js'

/** More than any server sends; bounds what a hostile object can make us read. */
const MOST_HEADERS = 200
const LONGEST_VALUE = 200

export type Headers = ReadonlyMap<string, string>

const NONE: Headers = new Map()

/** All headers found on the error, names in lower case. The bag nearest to the error wins. */
export function headersOf(error: unknown): Headers {
  const bags = [
    prop(error, 'headers'),
    prop(prop(error, 'response'), 'headers'),
    prop(prop(error, '$response'), 'headers'),
    prop(error, 'responseHeaders'),
  ]
  if (!bags.some(isObject)) return NONE
  const found = new Map<string, string>()
  for (const bag of bags) {
    for (const [name, value] of pairs(bag)) {
      const text = valueText(value)
      if (typeof name !== 'string' || text === undefined) continue
      const key = name.slice(0, LONGEST_VALUE).toLowerCase()
      if (!found.has(key)) found.set(key, text)
    }
  }
  return found
}

/** Headers, Map and a list of pairs are iterables of pairs; the rest is a plain object, or a flat name-value list. */
function pairs(bag: unknown): readonly (readonly [unknown, unknown])[] {
  if (!isObject(bag)) return []
  const iterate = prop(bag, Symbol.iterator)
  if (typeof iterate !== 'function')
    return (attempt(() => Object.keys(bag)) ?? []).slice(0, MOST_HEADERS).map(key => [key, prop(bag, key)] as const)
  const entries = attempt(() => take(bag as Iterable<unknown>, MOST_HEADERS)) ?? []
  if (typeof entries[0] !== 'string') return entries.map(entry => [prop(entry, 0), prop(entry, 1)] as const)
  const flat: [unknown, unknown][] = []
  for (let index = 0; index < entries.length; index += 2) flat.push([entries[index], entries[index + 1]])
  return flat
}

function take(source: Iterable<unknown>, limit: number): unknown[] {
  const taken: unknown[] = []
  for (const entry of source) if (taken.push(entry) >= limit) break
  return taken
}

function valueText(value: unknown): string | undefined {
  const single = items(value, 1)?.[0] ?? value
  if (typeof single === 'number') return String(single)
  return typeof single === 'string' ? single.slice(0, LONGEST_VALUE).trim() : undefined
}
