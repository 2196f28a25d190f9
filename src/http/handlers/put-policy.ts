import type { z } from '@hono/zod-openapi'
import type { PolicyOverride } from '../../domain/policy.js'
import { versionIn } from '../check-request.js'
import type { Call } from '../route.js'
import type { policyBody } from '../schemas/queue.js'
import { without } from '../without.js'
import { getPolicy } from './get-policy.js'

/** Overrides what the code says; what is left out stays as the code has it. */
export async function putPolicy(call: Call<{ queue: string }, unknown, z.output<typeof policyBody>>) {
  const { params, body, backend, acting, seen } = call
  const { reason: _, ...policy } = body
  await backend.operator.policies.set(
    { queue: params.queue },
    without(policy) as PolicyOverride,
    without({ ...acting, expectedVersion: versionIn(seen) }),
  )
  return getPolicy(call)
}
