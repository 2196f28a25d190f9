// The provider worker: a registry, the job that runs its operations, and how their failures are judged. A Redrive works on
// its job: `redrive.work([worker.job])`. Judgement of your own: `rules`, or a subclass with a `classify`.
import type { ClassifierAnswer, ClassifyContext, JobOptions, Rule } from 'redrive'
import { type ProviderJob, providerJob } from './operation-job.js'
import { ProviderRegistry } from './registry.js'
import { checkDelays, DEFAULT_DELAYS, type RetryDelays } from './retry-delays.js'

export interface ProviderWorkerOptions {
  readonly registry?: ProviderRegistry
  readonly retryDelays?: Partial<RetryDelays>
  /** Attempts in all; MAX_RETRY_ATTEMPTS, or 3, where it is not said. */
  readonly attempts?: number
  /** By the operation's name; for jobs that are enqueued by `submit`. */
  readonly attemptsByOperation?: Readonly<Record<string, number>>
  /** Of one attempt of an operation; five minutes. */
  readonly timeoutMs?: number
  /** What kind of failure an error is, by its type, code, HTTP status or text. The first that fits counts. */
  readonly rules?: readonly Rule[]
  /** `rabbitmq`: for a Redrive that was opened with it. */
  readonly transport?: JobOptions<unknown, unknown, unknown>['transport']
}

const TIMEOUT_MS = 300_000

export class ProviderWorker {
  readonly registry: ProviderRegistry
  readonly job: ProviderJob
  readonly #jobWith: (attempts: number | undefined) => ProviderJob
  readonly #byOperation: ReadonlyMap<string, ProviderJob>

  constructor(options: ProviderWorkerOptions = {}) {
    const { registry = new ProviderRegistry(), rules = [], timeoutMs = TIMEOUT_MS, transport } = options
    const retryDelays = checkDelays({ ...DEFAULT_DELAYS, ...options.retryDelays })
    this.registry = registry
    this.#jobWith = attempts =>
      providerJob({
        registry,
        retryDelays,
        attempts,
        timeoutMs,
        transport,
        rules,
        classify: (error, context) => this.classify(error, context),
      })
    this.job = this.#jobWith(options.attempts)
    const byOperation = Object.entries(options.attemptsByOperation ?? {})
    this.#byOperation = new Map(byOperation.map(([name, attempts]) => [name, this.#jobWith(attempts)]))
  }

  /** The job as it is enqueued for an operation: the number of attempts travels with it. */
  jobFor(operation: string): ProviderJob {
    return this.#byOperation.get(operation) ?? this.job
  }

  /**
   * For a subclass: the kind of what an operation threw; undefined for Redrive's own judgement. Not asked about errors that
   * say their kind themselves, nor where a rule fits.
   */
  protected classify(_error: unknown, _context: ClassifyContext): ClassifierAnswer {
    return undefined
  }
}
