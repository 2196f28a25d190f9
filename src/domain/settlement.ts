// The end of one attempt, ready to be written down: what happened and what follows, fenced by the claim's lease.
import type { Decision } from './decision.js'
import type { JobId, Lease } from './ids.js'
import type { Outcome } from './outcome.js'

export interface Settlement {
  readonly id: JobId
  readonly lease: Lease
  readonly receipt?: string | undefined
  readonly outcome: Outcome
  readonly decision: Decision
}
