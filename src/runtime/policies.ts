// Which policy holds for a job right now: looked up for every attempt, worked out once for each combination.
import type { Job } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import { IN_PROCESS_TOTAL_MS, type Policy, type PolicyOverride } from '../domain/policy.js'
import { effectivePolicy, parsePolicy } from '../policy/effective.js'

const QUEUED: PolicyOverride = {}
const IN_PROCESS: PolicyOverride = { totalMs: IN_PROCESS_TOTAL_MS }

export class Policies {
  readonly #base: PolicyOverride
  readonly #ofQueue = new Map<string, { text: string; policy: PolicyOverride }>()
  #resolved = new WeakMap<PolicyOverride, Map<string, Policy>>()

  /** `base`: what the settings say for all jobs that say nothing themselves. */
  constructor(base: PolicyOverride) {
    this.#base = base
  }

  /** `ofCode`: what the job's definition says, or, where its code is not known, what its workers announced. */
  for(ofCode: PolicyOverride, job: Pick<Job, 'queue' | 'maxAttempts'>): Policy {
    return this.#resolve(ofCode, job, QUEUED)
  }

  /** For a call that is awaited in place: nobody waits for ever, so it has a total limit even if nothing names one. */
  forCall(ofCode: PolicyOverride, job: Pick<Job, 'queue'>): Policy {
    return this.#resolve(ofCode, job, IN_PROCESS)
  }

  #resolve(ofCode: PolicyOverride, job: Pick<Job, 'queue' | 'maxAttempts'>, start: PolicyOverride): Policy {
    let byJob = this.#resolved.get(ofCode)
    if (!byJob) {
      byJob = new Map()
      this.#resolved.set(ofCode, byJob)
    }
    const key = `${start === QUEUED ? '' : 'call'} ${job.maxAttempts ?? ''} ${job.queue}`
    let policy = byJob.get(key)
    if (!policy) {
      const asked = job.maxAttempts === undefined ? undefined : { attempts: job.maxAttempts }
      policy = effectivePolicy(start, this.#base, ofCode, asked, this.#ofQueue.get(job.queue)?.policy)
      byJob.set(key, policy)
    }
    return policy
  }

  /** Only these queues have a policy of their own now: what is known of others is forgotten. */
  keepOnly(queues: ReadonlySet<string>): void {
    for (const queue of this.#ofQueue.keys()) if (!queues.has(queue)) this.setQueue(queue, null)
  }

  /** Follows what the ledger says of a queue. A policy that does not parse changes nothing; the error is thrown. */
  setQueue(queue: string, policy: Json): void {
    const text = JSON.stringify(policy)
    if ((this.#ofQueue.get(queue)?.text ?? 'null') === text) return
    this.#ofQueue.set(queue, { text, policy: policy === null ? {} : parsePolicy(policy, `policy of queue ${queue}`) })
    this.#resolved = new WeakMap()
  }
}
