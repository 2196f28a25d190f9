// Reading things that anyone may have thrown: getters that throw, proxies that refuse, objects of other realms.
// Nothing here throws, whatever it is given.

/** What `look` returns, or undefined if looking throws. */
export function attempt<T>(look: () => T): T | undefined {
  try {
    return look()
  } catch {
    return undefined
  }
}

export const isObject = (value: unknown): value is object =>
  (typeof value === 'object' && value !== null) || typeof value === 'function'

export function prop(value: unknown, key: PropertyKey): unknown {
  if (!isObject(value)) return undefined
  // Not by `attempt`: a storm of failures reads dozens of these for each, and a closure for each read is garbage.
  try {
    return (value as Record<PropertyKey, unknown>)[key]
  } catch {
    return undefined
  }
}

/** A property that is text and not empty. */
export function textProp(value: unknown, key: PropertyKey): string | undefined {
  const found = prop(value, key)
  return typeof found === 'string' && found !== '' ? found : undefined
}

/** An array's items, at most `limit` of them; undefined for anything that is not an array. */
export function items(value: unknown, limit: number): readonly unknown[] | undefined {
  return attempt(() => (Array.isArray(value) ? value.slice(0, limit) : undefined))
}
