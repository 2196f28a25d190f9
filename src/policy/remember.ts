/** Adds one and forgets the oldest, so that there are never more than `most`. */
export function remember<Value>(all: Map<string, Value>, most: number, key: string, value: Value): Value {
  const [oldest] = all.keys()
  if (all.size >= most && oldest !== undefined) all.delete(oldest)
  all.set(key, value)
  return value
}
