// RabbitMQ for the suite: queues under a prefix of their own, of either type.
import { rabbitmq } from '../../src/transport/transports/rabbitmq.js'
import { cleanQueues, freshPrefix, rabbitmqUrl } from '../support/rabbitmq.js'
import { type BrokerUnderTest, carriedHarness } from './carried.js'

export const rabbitmqHarness = (options: { quorum: boolean }) =>
  carriedHarness(async (): Promise<BrokerUnderTest> => {
    const url = await rabbitmqUrl()
    const prefix = freshPrefix()
    return {
      choose: async () => rabbitmq({ url, prefix, ...options }),
      uses: queue => cleanQueues(prefix + queue),
    }
  })
