// Triage rules: what to do about dead letters without asking a person each time. A rule is data: what it matches, what it
// does, and how often it may.
import type { Kind } from './failure.js'
import type { JobId } from './ids.js'

/** All that is named must hold. `text` is looked for, as it is, in the message and the job's name. */
export interface TriageMatch {
  readonly kind?: Kind
  /** A group, with what was merged into it. */
  readonly group?: string
  readonly text?: string
  readonly queue?: string
  readonly name?: string
  readonly service?: string
  /** Dead for at least so long. */
  readonly olderThanMs?: number
}

export type TriageAction =
  /** Sends it back to run, so long after it died. */
  | { readonly type: 'retry'; readonly afterMs: number }
  /** Closes it for good, with this reason; nothing is deleted. */
  | { readonly type: 'discard'; readonly reason: string }
  | { readonly type: 'assign'; readonly to: string }
  | { readonly type: 'prioritise'; readonly priority: number }
  /** Tells (`triage.escalated`), for somebody to be called. */
  | { readonly type: 'escalate'; readonly message: string }

export type TriageActionType = TriageAction['type']

/** A rule as a person writes it. */
export interface TriageRuleDraft {
  readonly name: string
  readonly match: TriageMatch
  readonly action: TriageAction
  /** Off: it is kept, and can be tried with a dry run. On by default. */
  readonly enabled?: boolean
  /** The lower one is asked first; 100 by default. */
  readonly position?: number
  /** At most so many dead letters in one run; 1,000 by default. */
  readonly maxPerRun?: number
  /** At most so often for one dead letter, over all its lives; 3 by default for `retry`, else once. */
  readonly maxPerLetter?: number
}

export interface TriageRule extends Required<TriageRuleDraft> {
  readonly id: string
  /** Counts its changes. */
  readonly version: number
  readonly createdAt: Date
  readonly createdBy: string
  readonly updatedAt: Date
  readonly updatedBy: string
}

/** An open dead letter, as a rule sees it. Times are milliseconds of the database's clock. */
export interface TriageLetter {
  readonly id: JobId
  readonly queue: string
  readonly name: string
  readonly kind: Kind
  readonly service: string | undefined
  readonly fingerprint: string
  readonly message: string
  readonly diedAt: number
  /** A time is set at which the rules look at it again. */
  readonly toLookAt: boolean
  /** How often each rule, by its id, did something about it. */
  readonly triaged: Readonly<Record<string, number>>
}

/** A rule with the fingerprints of the group it names. */
export interface ReadyRule extends TriageRule {
  readonly fingerprints?: ReadonlySet<string>
}

export type TriageVerdict =
  | { readonly type: 'act'; readonly rule: ReadyRule }
  /** A rule has it, and its time has not come. */
  | { readonly type: 'wait'; readonly rule: ReadyRule; readonly until: number }
  /** No rule has it; at `lookAt` one may. */
  | { readonly type: 'leave'; readonly lookAt: number | undefined }

/** What the rules say of a letter. Pure: policy/triage.ts. */
export type TriageJudge = (rules: readonly ReadyRule[], letter: TriageLetter, now: number) => TriageVerdict
