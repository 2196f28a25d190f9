// Which policy holds for a job right now: looked up for every attempt, worked out once for each combination.
import type { Job } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import { IN_PROCESS_TOTAL_MS, type Policy, type PolicyOverride } from '../domain/policy.js'
import { parsePolicy } from '../policy/effective.js'
import { askedFor, layeredPolicy, type PolicyLayers } from '../policy/policy-layers.js'

const QUEUED: PolicyOverride = {}
const IN_PROCESS: PolicyOverride = { totalMs: IN_PROCESS_TOTAL_MS }

type Of = Pick<Job, 'queue' | 'name' | 'maxAttempts'>
type Scope = 'queue' | 'job'

/** What a worker announced of a job: its definition, and the settings of its process. */
export type Announced = Required<Pick<PolicyLayers, 'settings' | 'definition'>>

/** An answer for one definition: most have one queue, one name and one number of attempts, so that a list is short. */
interface Known {
  readonly job: Of
  readonly start: PolicyOverride
  readonly policy: Policy
}
const MOST_KNOWN = 16

export class Policies {
  /** What the settings say for all jobs that say nothing themselves. */
  readonly settings: PolicyOverride
  readonly #atRunTime = {
    queue: new Map<string, { text: string; policy: PolicyOverride }>(),
    job: new Map<string, { text: string; policy: PolicyOverride }>(),
  }
  #known = new WeakMap<PolicyOverride, Known[]>()
  /** The last answer: the next question is mostly the same. */
  #last: (Known & { readonly definition: PolicyOverride }) | undefined

  constructor(settings: PolicyOverride) {
    this.settings = settings
  }

  /** `definition`: what the job's code says. */
  for(definition: PolicyOverride, job: Of): Policy {
    return this.#resolve(definition, job, QUEUED)
  }

  /** For a call that is awaited in place: nobody waits for ever, so it has a total limit even if nothing names one. */
  forCall(definition: PolicyOverride, job: Of): Policy {
    return this.#resolve(definition, job, IN_PROCESS)
  }

  /** For whoever does not know the job's code; undefined: its workers announced nothing. */
  forAnnounced(announced: Announced | undefined, job: Of): Policy {
    return layeredPolicy(this.#layers(announced ?? { settings: this.settings, definition: {} }, job))
  }

  #resolve(definition: PolicyOverride, job: Of, start: PolicyOverride): Policy {
    const last = this.#last
    if (last && last.definition === definition && isAnswer(last, job, start)) return last.policy
    const known = this.#find(definition, job, start)
    this.#last = { ...known, definition }
    return known.policy
  }

  #find(definition: PolicyOverride, job: Of, start: PolicyOverride): Known {
    let answers = this.#known.get(definition)
    if (!answers || answers.length > MOST_KNOWN) {
      answers = []
      this.#known.set(definition, answers)
    }
    const answer = answers.find(known => isAnswer(known, job, start))
    if (answer) return answer
    const policy = layeredPolicy(this.#layers({ settings: this.settings, definition }, job), start)
    const { queue, name, maxAttempts } = job
    const known = { job: { queue, name, ...(maxAttempts !== undefined && { maxAttempts }) }, start, policy }
    answers.push(known)
    return known
  }

  #forget(): void {
    this.#known = new WeakMap()
    this.#last = undefined
  }

  #layers(announced: Announced, { queue, name, maxAttempts }: Of): PolicyLayers {
    return {
      ...announced,
      enqueue: askedFor(maxAttempts),
      queue: this.#atRunTime.queue.get(queue)?.policy,
      job: this.#atRunTime.job.get(name)?.policy,
    }
  }

  /** Only these have a policy of their own now: what is known of others is forgotten. */
  keepOnly(scope: Scope, names: ReadonlySet<string>): void {
    for (const name of this.#atRunTime[scope].keys()) if (!names.has(name)) this.set(scope, name, null)
  }

  /** Whether anything set at run time could end a job that waits for a retry. */
  get mayExhaust(): { readonly queues: readonly string[]; readonly jobs: readonly string[] } {
    const limiting = (scope: Scope) =>
      [...this.#atRunTime[scope]]
        .filter(([, { policy }]) => policy.attempts !== undefined || policy.retryKinds !== undefined)
        .map(([name]) => name)
    return { queues: limiting('queue'), jobs: limiting('job') }
  }

  /** Follows what the ledger says. A policy that does not parse changes nothing; the error is thrown. */
  set(scope: Scope, name: string, policy: Json): void {
    const policies = this.#atRunTime[scope]
    if (policy === null) {
      if (policies.delete(name)) this.#forget()
      return
    }
    const text = JSON.stringify(policy)
    if (policies.get(name)?.text === text) return
    policies.set(name, { text, policy: parsePolicy(policy, `policy of ${scope} ${name}`) })
    this.#forget()
  }
}

const isAnswer = (known: Known, { queue, name, maxAttempts }: Of, start: PolicyOverride): boolean =>
  known.start === start && known.job.maxAttempts === maxAttempts && known.job.name === name && known.job.queue === queue
