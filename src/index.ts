// The public API. What is not exported here is not promised.

export type { Clock, Random, Timer } from './domain/clock.js'
export type { Decision } from './domain/decision.js'
export {
  AuthenticationError,
  type ErrorCode,
  isRedriveError,
  KindError,
  type KindErrorOptions,
  NetworkError,
  PermanentError,
  RateLimitedError,
  RedriveError,
  SystemError,
  TransientError,
  ValidationError,
} from './domain/errors.js'
export type { EventName, Events } from './domain/event.js'
export { type Cause, type Failure, KINDS, type Kind } from './domain/failure.js'
export type { JobId } from './domain/ids.js'
export type { Enqueued, Job, JobIdentity } from './domain/job.js'
export type { Json } from './domain/json.js'
export { MOVES, type RecoveryStatus, STATES, type State } from './domain/lifecycle.js'
export type { Outcome, OutcomeType } from './domain/outcome.js'
export { type Backoff, DEFAULT_POLICY, type Policy, type PolicyOverride } from './domain/policy.js'
export type { Attempt } from './ledger/attempt.js'
export type { ForeignClient } from './ledger/database.js'
export type { DeadLetter, DeadLetterCount, DeadLetterFilter, Page } from './ledger/dead-letter.js'
export type { Annotation } from './ledger/dead-letter-change.js'
export type { JobView } from './ledger/job.js'
export type { QueueSettings, QueueStatistics } from './ledger/queue.js'
export type { RecoveryRun, RecoveryStatistics } from './ledger/recovery-run.js'
export type { RedriveResult } from './ledger/redrive.js'
export { openRedrive, type RedriveOptions } from './open-redrive.js'
export type { Acting } from './operator/context.js'
export type { DeadLetters, ListOptions, Selection } from './operator/dead-letters.js'
export type { Jobs } from './operator/jobs.js'
export type { CleanOptions, Queues } from './operator/queues.js'
export { custom, delays, exponential, fixed, immediate, linear } from './policy/backoff.js'
export {
  type Classifier,
  type ClassifierAnswer,
  type ClassifyContext,
  classify,
  type Rule,
  type RuleMatch,
} from './policy/classify.js'
export { decide, type Situation } from './policy/decide.js'
export { effectivePolicy } from './policy/effective.js'
export { fingerprint } from './policy/fingerprint.js'
export type { Operator, PerformOptions, Redrive, WorkOptions } from './redrive.js'
export { type Retryable, type RetryableOptions, retryable } from './retryable.js'
export {
  defineJob,
  type Handler,
  type HandlerContext,
  type JobDefinition,
  type JobOptions,
  type Log,
} from './runtime/definition.js'
export type { Retention } from './runtime/janitor.js'
export type { BatchItem, EnqueueOptions } from './runtime/producer.js'
export { bury, cancel, snooze, type Verdict } from './runtime/verdict.js'
export type { Worker } from './runtime/worker.js'
export type { Logger } from './telemetry/log.js'
