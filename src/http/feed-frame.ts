// One event on the wire, as text/event-stream has it: as it is for whoever may see payloads, and redacted for all others. Made
// once, however many listen.
import type { Json } from '../domain/json.js'
import { redacted } from './redacted.js'

export interface Frame {
  readonly whole: Uint8Array
  readonly redacted: Uint8Array
}

export interface FrameOptions {
  readonly id?: string | undefined
  /** How long a client waits before it comes back. */
  readonly retryMs?: number
}

export function frameOf(name: string, about: object, { id, retryMs }: FrameOptions): Frame {
  const head = `${retryMs === undefined ? '' : `retry: ${retryMs}\n`}${id === undefined ? '' : `id: ${id}\n`}event: ${name}\n`
  // JSON has no line breaks of its own: what stands in a message cannot end the event.
  const text = JSON.stringify(about)
  const hidden = JSON.stringify(redacted(JSON.parse(text) as Json))
  const bytes = (data: string) => Buffer.from(`${head}data: ${data}\n\n`)
  const whole = bytes(text)
  return { whole, redacted: hidden === text ? whole : bytes(hidden) }
}

export const HEARTBEAT: Uint8Array = Buffer.from(': heartbeat\n\n')
