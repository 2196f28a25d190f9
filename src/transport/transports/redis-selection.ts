// Some entries of some streams, as scripts take them: the streams as keys, and for each how many and which, in order.

export interface Placed {
  readonly key: string
  readonly id: string
  /** The id as numbers: the time it was added, and its rank among those of the same millisecond. */
  readonly at: number
  readonly sequence: number
}

export function placed(key: string, id: string): Placed {
  const dash = id.indexOf('-')
  return { key, id, at: Number(id.slice(0, dash)), sequence: Number(id.slice(dash + 1)) }
}

/** One text for an entry of a stream. */
export const nameOf = (key: string, id: string): string => `${key}\n${id}`

export const byPlace = (a: Placed, b: Placed): number => a.at - b.at || a.sequence - b.sequence

export interface Selection {
  readonly keys: string[]
  readonly words: (string | number)[]
}

export function selection(entries: readonly Placed[]): Selection {
  const streams = new Map<string, Placed[]>()
  for (const entry of entries) {
    const stream = streams.get(entry.key)
    if (stream) stream.push(entry)
    else streams.set(entry.key, [entry])
  }
  const words: (string | number)[] = []
  for (const stream of streams.values()) {
    words.push(stream.length)
    for (const { id } of stream.sort(byPlace)) words.push(id)
  }
  return { keys: [...streams.keys()], words }
}
