import type { z } from '@hono/zod-openapi'
import { versionIn } from '../check-request.js'
import type { Call } from '../route.js'
import type { groupBody } from '../schemas/group.js'
import { without } from '../without.js'

export async function patchGroup(call: Call<{ id: string }, unknown, z.output<typeof groupBody>>) {
  const { params, body, backend, acting, seen, header } = call
  const { reason: _, ...change } = body
  const group = await backend.operator.groups.update(
    params.id,
    without(change),
    without({ ...acting, version: versionIn(seen) }),
  )
  header('etag', `"${group.version}"`)
  return group
}
