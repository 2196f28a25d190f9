// RabbitMQ with classic queues.
import { BROKER_SKIPS } from './carried.js'
import { rabbitmqHarness } from './rabbitmq.js'
import { transportConformance } from './transport.js'

transportConformance('RabbitMQ, classic queues', rabbitmqHarness({ quorum: false }), BROKER_SKIPS)
