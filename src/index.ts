// The public API. What is not exported here is not promised.

export type {
  Breaker,
  BreakerSettings,
  BreakerState,
  BudgetSettings,
  ServiceCounts,
  ServiceSettings,
} from './domain/breaker.js'
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
export type { FleetEvent, FleetEventName, FleetEvents, FleetNews } from './domain/fleet-event.js'
export { GROUP_STATUSES, type GroupStatus } from './domain/group.js'
export type { JobId } from './domain/ids.js'
export type { Enqueued, Job, JobIdentity } from './domain/job.js'
export type { Json } from './domain/json.js'
export { MOVES, type RecoveryStatus, STATES, type State } from './domain/lifecycle.js'
export type { Outcome, OutcomeType } from './domain/outcome.js'
export { type Backoff, type CustomDelay, DEFAULT_POLICY, type Policy, type PolicyOverride } from './domain/policy.js'
export type { RateLimitSettings } from './domain/rate-limit.js'
export { SCOPES, type Scope } from './domain/scope.js'
export type { TriageAction, TriageMatch, TriageRule, TriageRuleDraft } from './domain/triage.js'
export type { Attempt } from './ledger/attempt.js'
export type { AuditRecord } from './ledger/audit.js'
export type { ForeignClient } from './ledger/database.js'
export type { DeadLetter, DeadLetterFilter, Page } from './ledger/dead-letter.js'
export type { Annotation } from './ledger/dead-letter-change.js'
export type { DeadLetterCount } from './ledger/dead-letter-count.js'
export type { Group, GroupFilter, GroupSort } from './ledger/group.js'
export type { GroupChange } from './ledger/group-change.js'
export type { FailureSample, Share } from './ledger/group-detail.js'
export type { JobView } from './ledger/job.js'
export type { JobBrief, JobFilter } from './ledger/job-list.js'
export type { PolicyScope, PolicyTarget, PolicyVersion } from './ledger/policy.js'
export type { QueueSettings, QueueStatistics } from './ledger/queue.js'
export type { RateLimitSetting, RateLimitState } from './ledger/rate-limit-setting.js'
export type { RecoveryRun, RecoveryStatistics } from './ledger/recovery-run.js'
export type { RedriveResult } from './ledger/redrive.js'
export type { EndedCount, FailureReason, ReasonFilter } from './ledger/statistics.js'
export type { Token } from './ledger/token.js'
export type { TriageOutcome, TriageRun } from './ledger/triage-run.js'
export type { WorkerView } from './ledger/worker-list.js'
export { openRedrive, type RedriveOptions } from './open-redrive.js'
export type { Audit, AuditFilter } from './operator/audit.js'
export type { Acting } from './operator/context.js'
export type { DeadLetters, ListOptions, Selection } from './operator/dead-letters.js'
export type { Explanation } from './operator/explain.js'
export type { FleetWatch } from './operator/fleet-news.js'
export type { GaugeDesk, GaugeReading } from './operator/gauges.js'
export type { ChangingGroup, GroupListOptions, Groups, GroupView } from './operator/groups.js'
export type { JobSearch } from './operator/job-search.js'
export type { Jobs } from './operator/jobs.js'
export type { Policies, PolicyActing, PolicyAnswer, PolicyOf, PolicyQuestion } from './operator/policies.js'
export type { CleanOptions, Queues } from './operator/queues.js'
export type { RateLimitChange, RateLimitFilter, RateLimits } from './operator/rate-limits.js'
export type { Services, ServiceView } from './operator/services.js'
export type { FailureReasons, FailureShare, Statistics, StatisticsRange } from './operator/statistics.js'
export type { MadeToken, Tokens } from './operator/tokens.js'
export type { ChangingRule, Triage, TriageRuleChange, TriageRunOptions } from './operator/triage.js'
export type { WorkerListOptions, Workers } from './operator/workers.js'
export { custom, delays, exponential, fixed, immediate, linear } from './policy/backoff.js'
export type { BreakerView } from './policy/breaker.js'
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
export type { Explained, Obstacle } from './policy/explain.js'
export { fingerprint } from './policy/fingerprint.js'
export type { Health, HealthCheck, HealthCheckName, HealthStatus } from './policy/health.js'
export {
  type Bounds,
  DEFAULT_HEALTH_THRESHOLDS,
  type HealthOptions,
  type HealthThresholds,
} from './policy/health-thresholds.js'
export type { PolicyLayers, PolicySource, PolicySources } from './policy/policy-layers.js'
export { DEFAULT_BREAKER, DEFAULT_BUDGET, type EffectiveService } from './policy/service-settings.js'
export type { NamedEnqueueOptions, Operator, PerformOptions, Redrive, WorkOptions } from './redrive.js'
export { type Retryable, type RetryableOptions, retryable } from './retryable.js'
export {
  defineJob,
  type Handler,
  type HandlerContext,
  type JobDefinition,
  type JobOptions,
  type Log,
} from './runtime/definition.js'
export type { OnHealth } from './runtime/health-watch.js'
export type { Retention } from './runtime/janitor.js'
export type { BatchItem, EnqueueOptions } from './runtime/producer.js'
export type { RateKey, RateLimit } from './runtime/rate-rule.js'
export { bury, cancel, snooze, type Verdict } from './runtime/verdict.js'
export type { Worker } from './runtime/worker.js'
export type { Logger } from './telemetry/log.js'
export type { BrokerChoice } from './transport/broker.js'
export type { TransportName } from './transport/carriers.js'
