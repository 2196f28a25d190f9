// How the moving parts tell where work came from and how it went, to whoever records spans. They know no library for it.
import type { Job, NewJob } from './job.js'
import type { Outcome } from './outcome.js'

/** One attempt, while it is recorded. */
export interface AttemptSpan {
  /** Runs the handler so that what it records belongs to this attempt. */
  within<T>(work: () => T): T
  end(outcome: Outcome): void
}

export interface Tracing {
  /** Nobody records: nothing else is to be called then, so that it costs nothing. */
  readonly isActive: boolean
  /** Around an enqueue: the jobs it is given know where they came from. */
  enqueue<T>(jobs: readonly NewJob[], publish: (jobs: readonly NewJob[]) => Promise<T>): Promise<T>
  /** `inPlace`: its caller awaits it. */
  attempt(job: Job & { readonly trace?: string }, worker: string, inPlace?: boolean): AttemptSpan
}
