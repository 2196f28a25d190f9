// Policies by queue and job name, as workers announced them: whoever rescues or buries may not know the job's code, and
// decides by the same policy all the same.
import type { Lane } from '../ledger/claim.js'
import { jobTypes } from '../ledger/job-type.js'
import { parsePolicy } from '../policy/effective.js'
import type { Announced } from './policies.js'
import type { Runtime } from './runtime.js'

export async function announcedPolicies({ db, announce }: Runtime): Promise<(job: Lane) => Announced | undefined> {
  const byLane = new Map<string, Announced>()
  for (const { queue, name, policy, settings } of await jobTypes(db)) {
    try {
      byLane.set(`${queue}\n${name}`, {
        settings: parsePolicy(settings, `settings of the workers of job ${name}`),
        definition: parsePolicy(policy, `announced policy of job ${name}`),
      })
    } catch (error) {
      announce('error', () => ({ where: 'reading an announced policy', error }))
    }
  }
  return ({ queue, name }) => byLane.get(`${queue}\n${name}`)
}
