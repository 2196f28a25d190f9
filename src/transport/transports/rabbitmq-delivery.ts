// A message of RabbitMQ in the terms of the port. Read only as far as somebody looks.
import type { Channel, ConsumeMessage } from 'amqplib'
import type { Delivery } from '../broker.js'

const DEFAULT_PRIORITY = 5
/** Headers beyond these are not looked at: they are for people who look at a malformed message. */
const MOST_HEADERS = 50
const MOST_HEADER_CHARS = 2_000

export class RabbitDelivery implements Delivery {
  readonly queue: string
  readonly message: ConsumeMessage
  readonly channel: Channel
  /** Acknowledged, or about to be. */
  settled = false
  #headers: Record<string, string> | undefined

  constructor(queue: string, message: ConsumeMessage, channel: Channel) {
    this.queue = queue
    this.message = message
    this.channel = channel
  }

  get priority(): number {
    return this.message.properties.priority ?? DEFAULT_PRIORITY
  }

  get body(): string {
    return this.message.content.toString('utf8')
  }

  get redelivered(): boolean {
    return this.message.fields.redelivered
  }

  /** With what AMQP itself has a place for, under the names of envelope.ts. */
  get headers(): Readonly<Record<string, string>> {
    this.#headers ??= headersOf(this.message)
    return this.#headers
  }
}

function headersOf({ properties }: ConsumeMessage): Record<string, string> {
  const headers: Record<string, string> = {}
  if (typeof properties.type === 'string') headers['redrive-name'] = properties.type
  if (typeof properties.messageId === 'string') headers['message-id'] = properties.messageId
  if (typeof properties.timestamp === 'number') headers['redrive-created-at'] = String(properties.timestamp * 1_000)
  let seen = 0
  for (const [name, value] of Object.entries(properties.headers ?? {})) {
    if (seen === MOST_HEADERS) break
    seen += 1
    if (typeof value !== 'string' && typeof value !== 'number' && typeof value !== 'boolean') continue
    headers[name.toLowerCase()] = String(value).slice(0, MOST_HEADER_CHARS)
  }
  return headers
}
