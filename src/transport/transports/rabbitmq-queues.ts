// The queues in RabbitMQ: what they are called, how they are made, and what to say when they are there already and
// different.
import type { Channel } from 'amqplib'
import { RedriveError } from '../../domain/errors.js'

export interface QueueForm {
  readonly prefix: string
  readonly quorum: boolean
  /** Off: they are expected to be there, made as somebody else thought right. */
  readonly declare: boolean
  /** Queues that are being made now. A quorum queue that is used while it is being made breaks the whole connection. */
  readonly making: Map<string, Promise<unknown>>
}

export const HIGHEST_PRIORITY = 10

export const queueName = ({ prefix }: QueueForm, queue: string): string => prefix + queue

/** Makes sure that a queue of ours is there. */
export async function ensureQueue(channel: Channel, form: QueueForm, queue: string): Promise<void> {
  const name = queueName(form, queue)
  const args = form.quorum ? { 'x-queue-type': 'quorum' } : { 'x-max-priority': HIGHEST_PRIORITY }
  await ensure(channel, form, name, args)
}

/** A plain queue: whoever looks at dead letters wants them in the order of their deaths. */
export async function ensureMirror(channel: Channel, form: QueueForm, name: string): Promise<void> {
  await ensure(channel, form, name, form.quorum ? { 'x-queue-type': 'quorum' } : {})
}

async function ensure(channel: Channel, { declare, making }: QueueForm, name: string, args: Record<string, unknown>) {
  // One after the other: whoever finds it made already is answered at once.
  while (making.has(name)) await making.get(name)
  const made = declare ? channel.assertQueue(name, { durable: true, arguments: args }) : channel.checkQueue(name)
  making.set(
    name,
    made.catch(() => {}).then(() => making.delete(name)),
  )
  try {
    await made
  } catch (error) {
    throw explained(error, name)
  }
}

const PRECONDITION_FAILED = 406
const NOT_FOUND = 404

function explained(error: unknown, name: string): unknown {
  const { code } = error as { code?: unknown }
  if (code === PRECONDITION_FAILED) {
    const message = `The RabbitMQ queue "${name}" is there with other settings; use \`quorum\`, another \`prefix\`, or \`declare: false\``
    return new RedriveError('SETTING_INVALID', message, { cause: error })
  }
  if (code === NOT_FOUND) {
    return new RedriveError('SETTING_INVALID', `There is no RabbitMQ queue "${name}", and \`declare\` is off`, {
      cause: error,
    })
  }
  return error
}
