// An entry of a stream in the terms of the port, and the other way round. The field `body` is the payload; every other
// field is a header. Anyone can make one: XADD redrive:images:5 * redrive-name resize body '{"key":"a.png"}'
import type { Delivery, Message } from '../broker.js'
import { nameOf, type Placed } from './redis-selection.js'
import type { Stream } from './redis-streams.js'

const BODY = 'body'
/** Headers beyond these are not looked at: they are for people who look at a malformed message. */
const MOST_HEADERS = 50
const MOST_HEADER_CHARS = 2_000

/** The words of an XADD after its id. */
export const wordsOf = ({ headers, body }: Message): string[] => [...Object.entries(headers).flat(), BODY, body]

export interface About {
  readonly redelivered: boolean
  readonly safeUntil: number
  readonly outOfTurn?: boolean
}

export class RedisDelivery implements Delivery, Placed {
  readonly stream: Stream
  readonly id: string
  readonly redelivered: boolean
  readonly body: string
  readonly headers: Readonly<Record<string, string>>
  readonly key: string
  readonly name: string
  readonly at: number
  readonly sequence: number
  /** Given a turn before its time, so that it is not passed over for ever. */
  readonly outOfTurn: boolean
  /** Until when, by the process's own clock, nobody else can have been given it. */
  safeUntil: number
  /** Handed out: somebody may have begun. */
  taken = false
  /** On its way back or out: what becomes of it is told by that call. */
  settling = false

  constructor(stream: Stream, id: string, fields: readonly string[], about: About) {
    this.stream = stream
    this.id = id
    const dash = id.indexOf('-')
    this.key = stream.key
    this.name = nameOf(stream.key, id)
    this.at = Number(id.slice(0, dash))
    this.sequence = Number(id.slice(dash + 1))
    this.redelivered = about.redelivered
    this.outOfTurn = about.outOfTurn ?? false
    this.safeUntil = about.safeUntil
    const { body, headers } = read(fields)
    this.body = body
    // The same each time it is delivered; whoever gives no id gets one that is made of it.
    if (headers['redrive-id'] === undefined) headers['message-id'] ??= `${stream.key} ${id}`
    this.headers = headers
  }

  get queue(): string {
    return this.stream.queue
  }

  get priority(): number {
    return this.stream.priority
  }
}

function read(fields: readonly string[]): { body: string; headers: Record<string, string> } {
  const headers: Record<string, string> = {}
  let body = ''
  let seen = 0
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const name = (fields[at] as string).toLowerCase()
    const value = fields[at + 1] as string
    if (name === BODY) body = value
    else if (seen < MOST_HEADERS) {
      seen += 1
      headers[name.slice(0, MOST_HEADER_CHARS)] = value.slice(0, MOST_HEADER_CHARS)
    }
  }
  return { body, headers }
}
