// Many things that travel as one text, in pieces that such a text can hold.

/** So many characters may travel together: V8 has no texts of more than half a billion, and memory is not free. */
export const MOST_TOGETHER = 16_000_000

/** In their order, each piece no longer than `most` by more than its last item. */
export function inPieces<T>(items: readonly T[], lengthOf: (item: T) => number, most: number): T[][] {
  const pieces: T[][] = []
  for (let start = 0, end = 0; start < items.length; start = end) {
    for (let length = 0; end < items.length && length < most; end += 1) length += lengthOf(items[end] as T)
    pieces.push(items.slice(start, end))
  }
  return pieces
}
