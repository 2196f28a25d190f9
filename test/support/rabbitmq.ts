// RabbitMQ for tests: queues under a prefix of their own, gone when the test file is done. A test that needs the server is
// skipped with the reason where there is none.
import amqp from 'amqplib'
import { afterAll, TestRunner } from 'vitest'
import { services } from '../../scripts/services.mjs'
import { openInstances } from '../../src/open-instances.js'
import type { Redrive } from '../../src/redrive.js'

let refusal: Promise<string | undefined> | undefined
let prefixes = 0
const used = new Set<string>()

/** The address of the server for tests. */
export async function rabbitmqUrl(): Promise<string> {
  const service = services.find(({ name }) => name === 'RabbitMQ')
  if (!service) throw new Error('scripts/services.mjs names no RabbitMQ')
  const address = process.env[service.variable] || service.defaultAddress
  refusal ??= service.refusal(address)
  const refused = await refusal
  if (refused === undefined) return address
  const reason = `needs a RabbitMQ server: ${new URL(address).host} ${refused}; set ${service.variable}`
  TestRunner.getCurrentTest()?.context.skip(reason)
  throw new Error(reason)
}

/** Before the names of all queues of a test. */
export function freshPrefix(): string {
  prefixes += 1
  return `redrive-test-${process.pid}-${Date.now().toString(36)}-${prefixes}.`
}

export interface RawRabbit {
  readonly channel: amqp.ConfirmChannel
  /** Publishes as any client would. */
  send(queue: string, body: string | Buffer, options?: amqp.Options.Publish): Promise<void>
  depth(queue: string): Promise<number>
}

/** A client beside ours. `queues` it names are deleted at the end. */
export async function rawRabbit(url: string): Promise<RawRabbit> {
  const connection = await amqp.connect(url)
  open.add(connection)
  const channel = await connection.createConfirmChannel()
  return {
    channel,
    async send(queue, body, options = {}) {
      channel.sendToQueue(queue, Buffer.from(body), { persistent: true, ...options })
      await channel.waitForConfirms()
    },
    depth: async queue => (await channel.checkQueue(queue)).messageCount,
  }
}

const open = new Set<amqp.ChannelModel>()

/** Deleted when the test file is done. */
export function cleanQueues(...names: readonly string[]): void {
  for (const name of names) used.add(name)
}

afterAll(async () => {
  // A worker that is still there would make its queue again.
  await Promise.all([...openInstances].map(redrive => (redrive as Redrive).close({ graceMs: 0 })))
  if (used.size > 0) {
    const connection = await amqp.connect(await rabbitmqUrl())
    const channel = await connection.createChannel()
    for (const name of used) await channel.deleteQueue(name)
    await connection.close()
  }
  for (const connection of open) await connection.close().catch(() => {})
})
