// What happened, past tense, for whoever wants to know: logs, metrics, a user's own listener. Never on the path of
// a job's fate: a listener that throws changes nothing.
import type { BreakerState } from './breaker.js'
import type { Decision } from './decision.js'
import type { Failure, Kind } from './failure.js'
import type { JobId } from './ids.js'
import type { JobIdentity } from './job.js'
import type { OutcomeType } from './outcome.js'
import type { TriageAction } from './triage.js'

interface OfJob {
  readonly job: JobIdentity
}

interface OfAttempt extends OfJob {
  readonly attempt: number
  readonly worker: string
  readonly durationMs: number
  readonly outcome: OutcomeType
  /** False: it was given back before its handler began, or this was decided afterwards. */
  readonly ran: boolean
  /** It came back from the dead. */
  readonly redriven: boolean
}

interface OfGroup {
  /** The fingerprint. */
  readonly id: string
  readonly title: string
  readonly kind: Kind
  readonly service?: string
  /** Of the worker it was seen in. */
  readonly version?: string
}

export interface Events {
  'job.enqueued': OfJob
  'job.started': OfJob & { readonly attempt: number; readonly worker: string; readonly waitedMs: number }
  'job.completed': OfAttempt
  /** An attempt failed; what follows is in `decision`. */
  'job.failed': OfAttempt & {
    readonly failure: Failure
    readonly decision: Decision
  }
  'job.retrying': OfAttempt & { readonly failure: Failure; readonly delayMs: number; readonly reason: string }
  'job.dead': OfAttempt & { readonly failure: Failure | undefined; readonly reason: string }
  'job.cancelled': OfAttempt & { readonly reason: string }
  'job.returned': OfAttempt & { readonly reason: string; readonly delayMs: number }
  'job.held': OfAttempt & { readonly reason: string; readonly delayMs: number }
  /** Its worker died; recovery decided what follows. */
  'job.rescued': OfJob & { readonly worker: string; readonly outcome: OutcomeType; readonly decision: Decision }
  /** A result came too late: the job belongs to another worker, or has ended. Nothing was changed. */
  'job.refused': OfJob & { readonly outcome: OutcomeType; readonly worker: string }
  'worker.started': { readonly worker: string; readonly session: string }
  'worker.stopped': { readonly worker: string }
  /** The lease could not be renewed: everything running was aborted. */
  'worker.lapsed': { readonly worker: string; readonly reason: string; readonly jobs: readonly JobId[] }
  /** Nothing was fetched for too long although the worker wanted to. */
  'worker.stalled': { readonly worker: string; readonly sinceMs: number }
  /** Failures of a cause that was never seen before. */
  'group.new': OfGroup
  /** A cause that somebody had resolved failed again. */
  'group.regressed': OfGroup
  /** A breaker moved; told once, by the process that moved it. `shadow`: it only says what it would do. */
  'breaker.changed': {
    readonly service: string
    readonly from: BreakerState
    readonly to: BreakerState
    readonly reason: string
    /** How long it stays open. */
    readonly openMs: number | undefined
    readonly shadow: boolean
  }
  /** A triage rule did something about these dead letters. */
  'triage.acted': { readonly rule: string; readonly action: TriageAction; readonly letters: readonly JobId[] }
  /** A triage rule says that somebody has to be called. */
  'triage.escalated': {
    readonly rule: string
    readonly message: string
    readonly letters: readonly {
      readonly id: JobId
      readonly queue: string
      readonly name: string
      readonly kind: Kind
      /** The fingerprint of its failure. */
      readonly group: string
      readonly error: string
    }[]
  }
  'recovery.finished': {
    readonly cause: string
    readonly rescued: number
    readonly promoted: number
    readonly buried: number
    readonly triaged: number
    readonly cleaned: number
    readonly expired: number
    readonly error: string | undefined
  }
  /** Something in the background failed and will be tried again. */
  error: { readonly where: string; readonly error: unknown }
}

export type EventName = keyof Events
export type Listener<Name extends EventName> = (event: Events[Name]) => void
/**
 * How the moving parts tell; they know no listeners. The event is made only if someone listens, and then of `about`, for those who
 * tell of every job: a function that remembers what to tell would have to be made for each, heard or not.
 */
export type Announce = <Name extends EventName, About = undefined>(
  name: Name,
  event: (about: About) => Events[Name],
  about?: About,
) => void
