// Names as label values: as many as a monitoring system bears. Whoever may enqueue may invent names; what comes after the first
// thousand is counted together.
const MOST = 1_000

export const OTHER = 'other'

/** Remembers what it has let through. */
export class LabelValues {
  readonly #known = new Set<string>()
  readonly #most: number

  constructor(most = MOST) {
    this.#most = most
  }

  /** These names together, or `other` in the place of each. */
  of<Names extends readonly string[]>(...names: Names): Names {
    const key = names.join('\n')
    if (this.#known.has(key)) return names
    if (this.#known.size >= this.#most) return names.map(() => OTHER) as unknown as Names
    this.#known.add(key)
    return names
  }
}
