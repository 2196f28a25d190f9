import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { enqueueBody } from '../schemas/job.js'
import { without } from '../without.js'
import { auditAfterwards } from './audit-afterwards.js'

export async function enqueueJob(call: Call<unknown, unknown, z.output<typeof enqueueBody>>) {
  const { body, backend, acting, status } = call
  const { name, payload, ...options } = body
  const enqueued = await backend.enqueueNamed(name, payload ?? null, without(options))
  if (enqueued.deduplicated) status(200)
  else {
    const { actor = '' } = acting
    const after = { name }
    await auditAfterwards(call, { actor, action: 'enqueue', targetType: 'job', target: enqueued.id, after })
  }
  return enqueued
}
