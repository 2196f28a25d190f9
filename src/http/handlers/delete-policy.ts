import { versionIn } from '../check-request.js'
import type { Call } from '../route.js'
import { without } from '../without.js'
import { getPolicy } from './get-policy.js'

/** What the code says holds again. */
export async function deletePolicy(call: Call<{ queue: string }>) {
  const { params, backend, acting, seen } = call
  await backend.operator.policies.remove(
    { queue: params.queue },
    without({ ...acting, expectedVersion: versionIn(seen) }),
  )
  return getPolicy(call)
}
