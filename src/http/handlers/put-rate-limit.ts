import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { rateLimitBody } from '../schemas/rate-limit.js'
import { whole } from '../whole-list.js'
import { without } from '../without.js'

/** Beats what the code says, for all keys or for one; answers with what is set for this limit. */
export async function putRateLimit(call: Call<{ name: string }, unknown, z.output<typeof rateLimitBody>>) {
  const { params, body, backend, acting } = call
  const { limit, intervalMs, burst, key } = body
  const { rateLimits } = backend.operator
  await rateLimits.set(params.name, without({ limit, intervalMs, burst }), without({ ...acting, key }))
  return whole(await rateLimits.settings(params.name))
}
