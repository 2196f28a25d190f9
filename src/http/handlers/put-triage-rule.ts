import type { z } from '@hono/zod-openapi'
import { isRedriveError } from '../../domain/errors.js'
import type { TriageRuleDraft } from '../../domain/triage.js'
import { versionIn } from '../check-request.js'
import type { Call } from '../route.js'
import type { triageRuleBody } from '../schemas/triage.js'
import { without } from '../without.js'

/** Makes a rule, or changes the one of this name: what is left out stays as it is. */
export async function putTriageRule(call: Call<{ name: string }, unknown, z.output<typeof triageRuleBody>>) {
  const { params, body, backend, acting, seen, header, status } = call
  const { triage } = backend.operator
  const { reason: _, ...given } = body
  const rule = without(given) as Omit<TriageRuleDraft, 'name'>
  const version = versionIn(seen)
  const put = await triage.update(params.name, rule, without({ ...acting, version })).catch(error => {
    if (!isRedriveError(error, 'NOT_FOUND') || version !== undefined) throw error
    status(201)
    return triage.create({ ...rule, name: params.name }, acting)
  })
  header('etag', `"${put.version}"`)
  return put
}
