import type { Call } from '../route.js'
import { whole } from '../whole-list.js'

export const listQueues = async (call: Call) =>
  whole(await call.cached('queues', () => call.backend.operator.queues.statistics()))
