// What carries the jobs: RabbitMQ where AMQP_URL names one, with the open dead letters shown in a queue of their own, for alerts
// on its depth; else the ledger itself. The client of RabbitMQ is loaded only where it is used.
import type { RedriveOptions } from 'redrive'
import type { Settings } from './settings.js'

export async function transportsOf({ rabbitmq: to }: Settings): Promise<NonNullable<RedriveOptions['transports']>> {
  if (!to) return {}
  const { rabbitmq } = await import('redrive/transports/rabbitmq')
  // While RabbitMQ is away jobs are taken all the same: they go into the ledger and are run from there.
  return { rabbitmq: rabbitmq({ ...to, whenDown: 'park' }) }
}
