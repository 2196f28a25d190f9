// Jobs that have arrived from a broker and wait for a place, by lane, in the order of the line: higher priority first, then
// first come.
import type { Lane, LaneDemand } from '../transport/transport.js'

export interface Arrival {
  readonly queue: string
  readonly name: string
  readonly priority: number
  /** The monotonic time at which it came. */
  readonly arrivedAt: number
}

interface Numbered<Item> {
  readonly item: Item
  readonly number: number
}

type Line<Item> = Numbered<Item>[]

const before = (a: Numbered<Arrival>, b: Numbered<Arrival>): boolean =>
  a.item.priority !== b.item.priority ? a.item.priority > b.item.priority : a.number < b.number

export class Arrivals<Item extends Arrival> {
  readonly #lines: ReadonlyMap<string, Line<Item>>
  #number = 0
  #count = 0

  constructor(lanes: readonly Lane[]) {
    this.#lines = new Map(lanes.map(lane => [key(lane), []]))
  }

  get count(): number {
    return this.#count
  }

  knows(lane: Lane): boolean {
    return this.#lines.has(key(lane))
  }

  add(item: Item): void {
    const line = this.#lines.get(key(item)) as Line<Item>
    const numbered = { item, number: this.#number }
    this.#number += 1
    this.#count += 1
    // Brokers deliver nearly in this order already: the place is at the end or close to it.
    let place = line.length
    while (place > 0 && before(numbered, line[place - 1] as Numbered<Item>)) place -= 1
    if (place === line.length) line.push(numbered)
    else line.splice(place, 0, numbered)
  }

  /** Up to `limit` of the demanded lanes, first in line first. */
  take(demand: readonly LaneDemand[], limit: number): Item[] {
    if (this.#count === 0 || limit < 1) return []
    const wanted = demand.flatMap(lane => {
      const line = this.#lines.get(key(lane))
      return line && line.length > 0 ? [{ line, left: lane.limit, at: 0 }] : []
    })
    const taken: Item[] = []
    while (taken.length < limit) {
      let first: (typeof wanted)[number] | undefined
      for (const lane of wanted) {
        const next = lane.left > 0 ? lane.line[lane.at] : undefined
        if (next && (!first || before(next, first.line[first.at] as Numbered<Item>))) first = lane
      }
      if (!first) break
      taken.push((first.line[first.at] as Numbered<Item>).item)
      first.at += 1
      first.left -= 1
    }
    for (const { line, at } of wanted) if (at > 0) line.splice(0, at)
    this.#count -= taken.length
    return taken
  }

  /** Takes out all that match, in any order. */
  remove(matches: (item: Item) => boolean): Item[] {
    const removed: Item[] = []
    if (this.#count === 0) return removed
    for (const line of this.#lines.values()) {
      const staying = line.filter(({ item }) => !matches(item))
      if (staying.length === line.length) continue
      removed.push(...line.filter(({ item }) => matches(item)).map(({ item }) => item))
      line.splice(0, line.length, ...staying)
    }
    this.#count -= removed.length
    return removed
  }

  in(queue: string): number {
    let count = 0
    for (const line of this.#lines.values()) if (line[0]?.item.queue === queue) count += line.length
    return count
  }
}

const key = ({ queue, name }: Lane): string => `${queue}\n${name}`
