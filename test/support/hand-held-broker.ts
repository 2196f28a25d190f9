// A broker in the hand of a test: for what a real one does only by chance, such as to deliver just after a pause.
import type { NewJob } from '../../src/domain/job.js'
import type { Broker, BrokerConsumeOptions, BrokerConsumer, Delivery } from '../../src/transport/broker.js'
import { toMessage } from '../../src/transport/envelope.js'
import { aJob } from './story.js'

export interface HandHeldBroker {
  readonly broker: Broker
  readonly consumer: BrokerConsumer
  /** In the order of their acknowledgements. */
  readonly acknowledged: readonly Delivery[]
  /** It arrives, whatever was paused. */
  deliver(delivery: Delivery): void
  /** The connection breaks: whoever has these has no right to them any more. */
  lose(deliveries: readonly Delivery[]): void
}

export const aDelivery = (job: NewJob = aJob(), redelivered = false): Delivery => ({
  ...toMessage(job, 0),
  redelivered,
})

export function handHeldBroker(): HandHeldBroker {
  const acknowledged: Delivery[] = []
  let arrived: Delivery[] = []
  let options: BrokerConsumeOptions | undefined
  const consumer: BrokerConsumer = {
    take(queue, limit) {
      const taken = arrived.filter(delivery => delivery.queue === queue).slice(0, limit)
      arrived = arrived.filter(delivery => !taken.includes(delivery))
      return taken
    },
    arrived: queue => arrived.filter(delivery => delivery.queue === queue).length,
    async acknowledge(deliveries) {
      acknowledged.push(...deliveries)
      return []
    },
    giveBack: async () => {},
    setPaused() {},
    close: async () => {},
  }
  const broker: Broker = {
    name: 'redis',
    connected: true,
    publish: async () => {},
    consume(asked) {
      options = asked
      // What is there already is told as soon as anyone can hear it.
      queueMicrotask(() => arrived.length > 0 && asked.onWake())
      return consumer
    },
    depth: async () => 0,
    close: async () => {},
  }
  return {
    broker,
    consumer,
    acknowledged,
    deliver(delivery) {
      arrived.push(delivery)
      options?.onWake()
    },
    lose(deliveries) {
      arrived = arrived.filter(delivery => !deliveries.includes(delivery))
      options?.onLost(deliveries)
    },
  }
}
