// Ids that cannot be mixed up. A job's id is a UUIDv7 made by whoever enqueues it, so that a broker can
// carry a job the ledger has never seen; its time part only keeps index inserts close together.
import { randomFillSync } from 'node:crypto'
import { type Clock, systemClock } from './clock.js'

declare const brand: unique symbol
type Branded<T, Name extends string> = T & { readonly [brand]: Name }

export type JobId = Branded<string, 'JobId'>
/** One run of a worker, from its start to its end; it holds the lease of all its jobs. */
export type SessionId = Branded<string, 'SessionId'>
/** A claim's token: given once, never repeated. Every write about a running job must show it. */
export type Lease = Branded<string, 'Lease'>

/** A claim of a job that a broker carries: no claim of the ledger looks like this one. */
export const carriedLease = (number: number): Lease => `carried-${number}` as Lease

export const isCarriedLease = (lease: Lease): boolean => lease.startsWith('carried-')

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const isJobId = (text: string): text is JobId => UUID.test(text)

// Ids are made by the thousand, so one call for random bytes serves many of them, and each is written over the last one, as
// bytes: text put together from pieces is several times as dear, to make and to clean up.
const RANDOM_BYTES = 8
const pool = new Uint8Array(RANDOM_BYTES * 256)
let used = pool.length
const text = Buffer.from('00000000-0000-7000-8000-000000000000')
const DIGITS = Buffer.from('0123456789abcdef')
const PAIRS_AT = [20, 24, 26, 28, 30, 32, 34]

// Ids of one process grow: after the time comes a count, which begins somewhere in its lower half. An index takes what is
// larger than all it has without looking for its place.
const COUNTS = 0x1000
/** A clock that was set back by more is followed. */
const AHEAD_MS = 1_000
let time = 0
let count = 0

export function newId(clock: Clock = systemClock): string {
  if (used === pool.length) {
    randomFillSync(pool)
    used = 0
  }
  const now = Math.floor(clock.now())
  if (now > time || now < time - AHEAD_MS) begin(now)
  else if (++count === COUNTS) begin(time + 1)
  text[15] = digit(count >> 8)
  text[16] = digit(count >> 4)
  text[17] = digit(count)
  // Two bits of this digit say which sort of UUID it is, as the 7 before the count does.
  const last = pool[used + 7] as number
  text[19] = digit((last & 0b11) | 0b1000)
  text[22] = digit(last >> 4)
  for (let index = 0; index < PAIRS_AT.length; index += 1) {
    const at = PAIRS_AT[index] as number
    const byte = pool[used + index] as number
    text[at] = digit(byte >> 4)
    text[at + 1] = digit(byte)
  }
  used += RANDOM_BYTES
  return text.toString('latin1')
}

const digit = (bits: number): number => DIGITS[bits & 0xf] as number

function begin(at: number): void {
  time = at
  count = (((pool[used] as number) << 8) | (pool[used + 7] as number)) % (COUNTS / 2)
  const hex = time.toString(16).padStart(12, '0')
  text.write(hex.slice(0, 8), 0)
  text.write(hex.slice(8), 9)
}

export const newJobId = (clock?: Clock): JobId => newId(clock) as JobId
