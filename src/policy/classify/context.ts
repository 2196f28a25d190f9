// What a classification may know beside the error, and what users can say about it.
import type { Kind } from '../../domain/failure.js'
import type { JobIdentity } from '../../domain/job.js'

/** What a rule looks for. All that is named must fit; a match that names nothing fits nothing. */
export interface RuleMatch {
  /** The error's class or name. */
  readonly type?: string
  readonly code?: string | number
  /** HTTP status. */
  readonly status?: number
  /** Part of the message, in any case. Plain text, never a pattern (invariant 9). */
  readonly text?: string
}

/** A user's rule, as data: it can be stored and changed at run time. */
export interface Rule {
  readonly match: RuleMatch
  readonly kind: Kind
}

/** What a user's classifier may answer; undefined: our own judgement. */
export type ClassifierAnswer =
  | Kind
  | {
      readonly kind: Kind
      readonly because?: string
      readonly retryAfterMs?: number
      readonly service?: string
    }
  | undefined

// `void` lets a classifier end without a return for "our own judgement".
// biome-ignore lint/suspicious/noConfusingVoidType: a function type is the one place where void in a union says something
export type Classifier = (error: unknown, context: ClassifyContext) => ClassifierAnswer | void

export interface ClassifyContext {
  readonly job?: JobIdentity & { readonly attempt?: number }
  readonly service?: string
  readonly rules?: readonly Rule[]
  readonly classifier?: Classifier
  /** For waits given as a date; without it, only those that can be measured otherwise are read. */
  readonly now?: number
}
