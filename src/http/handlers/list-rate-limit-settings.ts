import type { Call } from '../route.js'
import { whole } from '../whole-list.js'

export const listRateLimitSettings = async ({ backend }: Call) => whole(await backend.operator.rateLimits.settings())
