import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { triageRunBody } from '../schemas/triage.js'
import { without } from '../without.js'
import { auditAfterwards } from './audit-afterwards.js'

/** What rules do is in the audit under their names; that somebody ran them is under theirs. */
export async function runTriageRules(call: Call<unknown, unknown, z.output<typeof triageRunBody>>) {
  const { body, backend, acting } = call
  const { triage } = backend.operator
  const { dryRun, rule } = body
  const run = await triage.run(without({ dryRun, rule }))
  if (!run.dryRun) {
    const acted = run.rules.reduce((sum, outcome) => sum + outcome.acted, 0)
    const { actor = '', reason } = acting
    const why = reason === undefined ? {} : { reason }
    await auditAfterwards(call, {
      actor,
      action: 'run triage',
      targetType: 'triage_rule',
      target: 'all',
      after: { acted },
      ...why,
    })
  }
  return run
}
