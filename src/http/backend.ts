// What the HTTP API needs of a Redrive: the operator's desk and a few functions beside it. `openRedrive` gives one.
import type { EventName, Listener } from '../domain/event.js'
import type { Enqueued } from '../domain/job.js'
import type { Audit } from '../operator/audit.js'
import type { DeadLetters } from '../operator/dead-letters.js'
import type { Diagnosis } from '../operator/doctor.js'
import type { FleetWatch } from '../operator/fleet-news.js'
import type { GaugeDesk } from '../operator/gauges.js'
import type { Groups } from '../operator/groups.js'
import type { readHealth } from '../operator/health.js'
import type { JobSearch } from '../operator/job-search.js'
import type { Jobs } from '../operator/jobs.js'
import type { Policies } from '../operator/policies.js'
import type { Queues } from '../operator/queues.js'
import type { RateLimits } from '../operator/rate-limits.js'
import type { RecoveryRun, RecoveryStatistics } from '../operator/recovery.js'
import type { Requests } from '../operator/requests.js'
import type { Services } from '../operator/services.js'
import type { StatisticsDesk } from '../operator/statistics.js'
import type { Tokens } from '../operator/tokens.js'
import type { Triage } from '../operator/triage.js'
import type { Workers } from '../operator/workers.js'

export interface NamedJobOptions {
  readonly queue?: string
  readonly delayMs?: number
  readonly runAt?: Date
  readonly priority?: number
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  readonly uniqueKey?: string
}

export interface Backend {
  readonly operator: {
    readonly deadLetters: DeadLetters
    readonly groups: Groups
    readonly queues: Queues
    readonly policies: Policies
    readonly jobs: Jobs
    readonly findJobs: JobSearch
    readonly services: Services
    readonly failureReasons: StatisticsDesk['failureReasons']
    readonly rateLimits: RateLimits
    readonly triage: Triage
    readonly workers: Workers
    readonly audit: Audit
    readonly tokens: Tokens
    readonly requests: Requests
    doctor(): Promise<Diagnosis>
    readonly fleetNews: FleetWatch
    readonly gauges: GaugeDesk
  }
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void
  enqueueNamed(name: string, payload: unknown, options?: NamedJobOptions): Promise<Enqueued>
  recover(): Promise<RecoveryRun | undefined>
  recoveryStatus(): Promise<RecoveryStatistics>
  health(): ReturnType<typeof readHealth>
}
