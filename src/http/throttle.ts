// Whoever tries wrong tokens is made to wait, by address. Bounded: the oldest address is forgotten when there are too many.
import type { Clock } from '../domain/clock.js'

export interface ThrottleOptions {
  /** So many wrong tokens from one address… */
  readonly failures: number
  /** …in this time; then it waits for the rest of it. */
  readonly windowMs: number
}

const MOST_ADDRESSES = 10_000

interface Window {
  failures: number
  readonly since: number
}

export class Throttle {
  readonly #clock: Clock
  readonly #options: ThrottleOptions
  readonly #windows = new Map<string, Window>()

  constructor(clock: Clock, options: ThrottleOptions) {
    this.#clock = clock
    this.#options = options
  }

  /** How long this address has to wait; 0: it may try. */
  waitMs(address: string): number {
    const window = this.#windows.get(place(address))
    if (!window || window.failures < this.#options.failures) return 0
    return Math.max(0, window.since + this.#options.windowMs - this.#clock.monotonic())
  }

  failed(address: string): void {
    const at = place(address)
    const now = this.#clock.monotonic()
    const window = this.#windows.get(at)
    if (window && now < window.since + this.#options.windowMs) {
      window.failures += 1
      return
    }
    this.#windows.delete(at)
    this.#windows.set(at, { failures: 1, since: now })
    if (this.#windows.size > MOST_ADDRESSES) this.#windows.delete(this.#windows.keys().next().value as string)
  }
}

/** One who has an IPv6 address has a whole /64 of them. */
function place(address: string): string {
  if (!address.includes(':') || address.startsWith('::ffff:')) return address
  const [head = ''] = address.split('%')
  const [left = '', right] = head.split('::')
  const first = left === '' ? [] : left.split(':')
  const last = right ? right.split(':') : []
  const groups =
    right === undefined ? first : [...first, ...Array(Math.max(0, 8 - first.length - last.length)).fill('0'), ...last]
  return groups
    .slice(0, 4)
    .map(group => group.replace(/^0+(?=.)/, ''))
    .join(':')
}
