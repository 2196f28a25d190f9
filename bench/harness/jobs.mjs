// The jobs that all contestants are given: what is in them and what their handlers do.
import { randomBytes } from 'node:crypto'
import { now, sleep } from './clock.mjs'

export const PAYLOAD_BYTES = 100
export const HANGS_FROM = 1_000_000

/**
 * @typedef {{ i: number, fill: string, at?: number }} Payload
 * @typedef {(payload: Payload, attempt: number) => Promise<void>} Handler
 * @typedef {{ payload: Payload, once?: boolean }} Item `once`: it must not be tried a second time
 */

// Text that hardly compresses, as real payloads: what Postgres could press together would be no 10 KB.
const TEXT = randomBytes(16_384).toString('base64')

/** A payload whose JSON has about so many bytes. @param {number} i @param {number} bytes @returns {Payload} */
export function payload(i, bytes = PAYLOAD_BYTES) {
  const length = Math.max(0, bytes - 22)
  const start = (i * 17) % (TEXT.length - length)
  return { i, fill: TEXT.slice(start, start + length) }
}

/** Of the mixed load: one in a hundred dies. @param {number} i */
export const dies = i => i % 100 === 1
/** One in ten fails at its first attempt. @param {number} i */
export const failsOnce = i => i % 10 === 5

/** @param {number} i @param {(message: string) => Error} permanent */
function charge(i, permanent) {
  throw permanent(`Order ${1000 + i} cannot be charged: the card ending ${i % 10_000} was declined`)
}

/**
 * @param {(message: string) => Error} permanent the contestant's way to say "do not try again"
 * @param {(latencyMs: number) => void} latency
 * @returns {Record<string, Handler>}
 */
export const handlers = (permanent, latency) => ({
  nothing: async () => {},
  await5ms: () => sleep(5),
  die: async ({ i }) => charge(i, permanent),
  fail: async ({ i }) => {
    throw new Error(`The connection to 10.0.0.${i % 250} was reset`)
  },
  mixed: async ({ i }, attempt) => {
    if (dies(i)) charge(i, permanent)
    if (failsOnce(i) && attempt === 1) throw new Error(`The connection to 10.0.0.${i % 250} was reset`)
  },
  ping: async ({ at }) => latency(now() - Number(at)),
  /** For the worker that is killed: the first attempt of some never ends in time. */
  hang: ({ i }, attempt) => sleep(i >= HANGS_FROM && attempt === 1 ? 120_000 : 0),
})
