// What a consumer has in hand: each delivery until it is settled, and those nobody has taken yet, by queue, in line.
import type { RedisDelivery } from './redis-entry.js'
import { byPlace } from './redis-selection.js'

/** Names of deliveries that we had: the oldest are forgotten. */
const MOST_REMEMBERED = 10_000

export class Holdings {
  readonly #held = new Map<string, RedisDelivery>()
  readonly #arrived = new Map<string, RedisDelivery[]>()
  readonly #ours = new Set<string>()

  get size(): number {
    return this.#held.size
  }

  all(): RedisDelivery[] {
    return [...this.#held.values()]
  }

  /** False for one that was lost and has come again: then the later one is in hand. */
  has(delivery: RedisDelivery): boolean {
    return this.#held.get(delivery.name) === delivery
  }

  knows(name: string): boolean {
    return this.#held.has(name)
  }

  /** `inLine` off: in hand, but not to be taken. */
  add(delivery: RedisDelivery, inLine: boolean): void {
    this.#held.set(delivery.name, delivery)
    if (!inLine) return
    const line = this.#arrived.get(delivery.queue)
    if (!line) this.#arrived.set(delivery.queue, [delivery])
    else insert(line, delivery)
  }

  arrived(queue: string): number {
    return this.#arrived.get(queue)?.length ?? 0
  }

  /** First in line first. */
  take(queue: string, limit: number): RedisDelivery[] {
    const taken = this.#arrived.get(queue)?.splice(0, Math.max(0, limit)) ?? []
    for (const delivery of taken) delivery.taken = true
    return taken
  }

  /** Those of a queue that nobody has taken, out of the line; they are in hand still. */
  withdraw(queue: string): RedisDelivery[] {
    return this.#arrived.get(queue)?.splice(0) ?? []
  }

  drop(deliveries: readonly RedisDelivery[]): void {
    for (const delivery of deliveries) {
      if (!this.has(delivery)) continue
      this.#held.delete(delivery.name)
      if (delivery.taken) continue
      const line = this.#arrived.get(delivery.queue) ?? []
      const place = line.indexOf(delivery)
      if (place >= 0) line.splice(place, 1)
    }
  }

  /** Dropped without a word of Redis: it may still be in our name, and is not new to us when it comes again. */
  abandon(deliveries: readonly RedisDelivery[]): void {
    this.drop(deliveries)
    this.#remember(deliveries.filter(({ taken, redelivered }) => taken || redelivered).map(({ name }) => name))
  }

  /** Acknowledged: a Redis that forgets that, because it comes back as it was a moment ago, gives us nothing new. */
  settled(deliveries: readonly RedisDelivery[]): void {
    this.#remember(deliveries.map(({ name }) => name))
  }

  /** We had it before, whatever Redis says. */
  wasOurs(name: string): boolean {
    return this.#ours.delete(name)
  }

  #remember(names: readonly string[]): void {
    for (const name of names) this.#ours.add(name)
    for (const oldest of this.#ours) {
      if (this.#ours.size <= MOST_REMEMBERED) break
      this.#ours.delete(oldest)
    }
  }
}

/** Nearly always at the end: entries come in line. */
function insert(line: RedisDelivery[], delivery: RedisDelivery): void {
  let place = line.length
  while (place > 0 && isBefore(delivery, line[place - 1] as RedisDelivery)) place -= 1
  line.splice(place, 0, delivery)
}

function isBefore(a: RedisDelivery, b: RedisDelivery): boolean {
  if (a.outOfTurn !== b.outOfTurn) return a.outOfTurn
  if (a.priority !== b.priority) return a.priority > b.priority
  return byPlace(a, b) < 0
}
