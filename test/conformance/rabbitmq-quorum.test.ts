// RabbitMQ with quorum queues. They keep no order of priority themselves before RabbitMQ 4: what is in a worker's hands is
// in order, and that is what the stories of priority see here.
import { BROKER_SKIPS } from './carried.js'
import { rabbitmqHarness } from './rabbitmq.js'
import { transportConformance } from './transport.js'

transportConformance('RabbitMQ, quorum queues', rabbitmqHarness({ quorum: true }), BROKER_SKIPS)
