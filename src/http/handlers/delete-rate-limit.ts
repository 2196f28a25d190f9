import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { rateLimitKey } from '../schemas/rate-limit.js'
import { whole } from '../whole-list.js'
import { without } from '../without.js'

/** What the code says holds again; answers with what is still set for this limit. */
export async function deleteRateLimit(call: Call<{ name: string }, unknown, z.output<typeof rateLimitKey>>) {
  const { params, body, backend, acting } = call
  const { rateLimits } = backend.operator
  await rateLimits.set(params.name, null, without({ ...acting, key: body.key }))
  return whole(await rateLimits.settings(params.name))
}
