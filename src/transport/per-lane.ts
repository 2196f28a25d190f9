// Something that is kept for each lane.
import type { Lane } from './transport.js'

export class PerLane<Kept> {
  readonly #make: (lane: Lane) => Kept
  readonly #all = new Map<string, Kept>()
  /** The next job is mostly of the same lane as the last. */
  #last: { readonly queue: string; readonly name: string; readonly kept: Kept } | undefined

  constructor(make: (lane: Lane) => Kept) {
    this.#make = make
  }

  of(lane: Lane): Kept {
    const { queue, name } = lane
    if (this.#last?.name === name && this.#last.queue === queue) return this.#last.kept
    const key = `${queue}\n${name}`
    let kept = this.#all.get(key)
    if (kept === undefined) {
      kept = this.#make(lane)
      this.#all.set(key, kept)
    }
    this.#last = { queue, name, kept }
    return kept
  }

  all(): Iterable<Kept> {
    return this.#all.values()
  }
}
