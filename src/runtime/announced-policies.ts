// Policies by queue and job name, as workers announced them: whoever rescues or buries may not know the job's code, and
// decides by the same policy all the same.
import type { PolicyOverride } from '../domain/policy.js'
import type { Lane } from '../ledger/claim.js'
import { jobTypes } from '../ledger/job-type.js'
import { parsePolicy } from '../policy/effective.js'
import type { Runtime } from './runtime.js'

export async function announcedPolicies({ db, announce }: Runtime): Promise<(job: Lane) => PolicyOverride> {
  const none: PolicyOverride = {}
  const byLane = new Map<string, PolicyOverride>()
  for (const { queue, name, policy } of await jobTypes(db)) {
    try {
      byLane.set(`${queue}\n${name}`, parsePolicy(policy, `announced policy of job ${name}`))
    } catch (error) {
      announce('error', () => ({ where: 'reading an announced policy', error }))
    }
  }
  return ({ queue, name }) => byLane.get(`${queue}\n${name}`) ?? none
}
