import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { cleanBody } from '../schemas/queue.js'

export async function cleanQueue(call: Call<{ queue: string }, unknown, z.output<typeof cleanBody>>) {
  const { params, body, backend, acting } = call
  const { grace, status, includeOpen = false } = body
  // A name that nobody knows is a mistake, not a queue with nothing to clean.
  await backend.operator.queues.get(params.queue)
  return backend.operator.queues.clean(params.queue, { status, graceMs: grace, includeOpen }, acting)
}
