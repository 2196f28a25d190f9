import type { Call } from '../route.js'
import { whole } from '../whole-list.js'
import { queueCounts } from './queue-stats.js'

export const listQueues = async (call: Call) => whole(await queueCounts(call))
