// Redis streams, with the ledger behind them.
import { afterAll } from 'vitest'
import type { Broker, BrokerChoice, BrokerConsumer, Delivery } from '../../src/transport/broker.js'
import { redis } from '../../src/transport/transports/redis.js'
import { type RedisScene, redisScene } from '../support/redis.js'
import { BROKER_SKIPS, type BrokerUnderTest, carriedHarness } from './carried.js'
import { transportConformance } from './transport.js'

let scene: RedisScene | undefined
afterAll(() => scene?.close())

const open = async (): Promise<BrokerUnderTest> => {
  scene = await redisScene({ keep: true })
  const { url, prefix } = scene
  return { choose: async () => countingOnTop(redis({ url, prefix })), uses: () => {} }
}

/** The suite says how many more it wants on top of what it has; the port counts all that is in hand. */
function countingOnTop(choice: BrokerChoice): BrokerChoice {
  const counting = (consumer: BrokerConsumer): BrokerConsumer => {
    const inHand = new Set<Delivery>()
    const without = (deliveries: readonly Delivery[]) => {
      for (const delivery of deliveries) inHand.delete(delivery)
      return deliveries
    }
    return {
      take(queue, limit) {
        const taken = consumer.take(queue, limit)
        for (const delivery of taken) inHand.add(delivery)
        return taken
      },
      arrived: queue => consumer.arrived(queue),
      acknowledge: deliveries => consumer.acknowledge(without(deliveries)),
      giveBack: deliveries => consumer.giveBack(without(deliveries)),
      setPaused: (queue, paused) => consumer.setPaused(queue, paused),
      setPrefetch: prefetch => consumer.setPrefetch?.(prefetch + inHand.size),
      close: () => consumer.close(),
    }
  }
  return {
    ...choice,
    open(context): Broker {
      const broker = choice.open(context)
      return {
        name: broker.name,
        get connected() {
          return broker.connected
        },
        publish: messages => broker.publish(messages),
        consume: options => counting(broker.consume(options)),
        depth: queue => broker.depth(queue),
        close: () => broker.close(),
      }
    },
  }
}

transportConformance('Redis', carriedHarness(open), BROKER_SKIPS)
