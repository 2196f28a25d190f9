import { RedriveError } from '../../domain/errors.js'
import type { Call } from '../route.js'
import { auditAfterwards } from './audit-afterwards.js'

/** Runs one and answers with it; where one is under way already, with that one. */
export async function triggerRecovery(call: Call) {
  const { backend, acting, status } = call
  const { actor = '', reason } = acting
  const run = await backend.recover()
  const why = reason === undefined ? {} : { reason }
  if (run) {
    const after = { status: run.status }
    const done = { action: 'trigger recovery', targetType: 'recovery', target: run.id } as const
    await auditAfterwards(call, { actor, ...done, after, ...why })
    return run
  }
  const { recent } = await backend.recoveryStatus()
  const underWay = recent.find(({ status }) => status === 'running') ?? recent[0]
  if (!underWay) throw new RedriveError('TAKES_TOO_LONG', 'Another process is about to start a recovery run')
  status(202)
  return underWay
}
