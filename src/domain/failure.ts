// What went wrong, as data: enough for a machine to decide and for a person to understand.

/** The seven kinds an error can be of, and `lost`: the worker died and left no error. */
export const KINDS = [
  'transient',
  'rate_limited',
  'network',
  'system',
  'permanent',
  'validation',
  'authentication',
  'lost',
] as const

export type Kind = (typeof KINDS)[number]

export const isKind = (value: unknown): value is Kind => KINDS.includes(value as Kind)

/** The kinds that may heal by themselves. A policy can say otherwise. */
export const RETRIABLE: Readonly<Record<Kind, boolean>> = {
  transient: true,
  rate_limited: true,
  network: true,
  system: true,
  lost: true,
  permanent: false,
  validation: false,
  authentication: false,
}

/** One error of a cause chain. */
export interface Cause {
  readonly type: string
  readonly message: string
  readonly code?: string
}

export interface Failure {
  readonly kind: Kind
  /** Why it was classified so, in words: "HTTP status 503". */
  readonly because: string
  /** The error's class or name: `TypeError`, `AxiosError`. */
  readonly type: string
  readonly message: string
  readonly code?: string
  readonly stack?: string
  /** What caused it, outermost first, at most LIMITS.causes of them. */
  readonly causes: readonly Cause[]
  readonly httpStatus?: number
  /** How long the other side asked us to wait. Beats the backoff. */
  readonly retryAfterMs?: number
  readonly service?: string
  /** Nothing in it told its kind, so that is a guess: it may be a mistake in the handler as well as anything else. */
  readonly unknown?: true
  /** Equal for failures of the same cause; carries the version of the rule that made it. */
  readonly fingerprint: string
}
