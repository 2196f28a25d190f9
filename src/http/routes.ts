// Every call there is, in one table: how it is called, who may, what goes in and out, and who answers.
import { cancelJob } from './handlers/cancel-job.js'
import { cleanQueue } from './handlers/clean-queue.js'
import { createToken } from './handlers/create-token.js'
import { deletePolicy } from './handlers/delete-policy.js'
import { deleteRateLimit } from './handlers/delete-rate-limit.js'
import { deleteTriageRule } from './handlers/delete-triage-rule.js'
import { enqueueJob } from './handlers/enqueue-job.js'
import { explainJob } from './handlers/explain-job.js'
import { getAlive } from './handlers/get-alive.js'
import { getDeadLetter } from './handlers/get-dead-letter.js'
import { getDoctor } from './handlers/get-doctor.js'
import { getFailureReasons } from './handlers/get-failure-reasons.js'
import { getGroup } from './handlers/get-group.js'
import { getHealth } from './handlers/get-health.js'
import { getJob } from './handlers/get-job.js'
import { getMe } from './handlers/get-me.js'
import { getMetrics } from './handlers/get-metrics.js'
import { getPolicy } from './handlers/get-policy.js'
import { getRecoveryStatus } from './handlers/get-recovery-status.js'
import { getStatistics } from './handlers/get-statistics.js'
import { isolateService } from './handlers/isolate-service.js'
import { listAudit } from './handlers/list-audit.js'
import { listDeadLetters } from './handlers/list-dead-letters.js'
import { listGroups } from './handlers/list-groups.js'
import { listJobs } from './handlers/list-jobs.js'
import { listQueues } from './handlers/list-queues.js'
import { listRateLimitSettings } from './handlers/list-rate-limit-settings.js'
import { listRateLimits } from './handlers/list-rate-limits.js'
import { listServices } from './handlers/list-services.js'
import { listTokens } from './handlers/list-tokens.js'
import { listTriageRules } from './handlers/list-triage-rules.js'
import { listWorkers } from './handlers/list-workers.js'
import { markFailed } from './handlers/mark-failed.js'
import { patchGroup } from './handlers/patch-group.js'
import { pauseQueue } from './handlers/pause-queue.js'
import { putNotes } from './handlers/put-notes.js'
import { putPolicy } from './handlers/put-policy.js'
import { putRateLimit } from './handlers/put-rate-limit.js'
import { putTriageRule } from './handlers/put-triage-rule.js'
import { getQueueStats } from './handlers/queue-stats.js'
import { releaseService } from './handlers/release-service.js'
import { resumeQueue } from './handlers/resume-queue.js'
import { retryDeadLetter } from './handlers/retry-dead-letter.js'
import { retryDeadLetters } from './handlers/retry-dead-letters.js'
import { retryJob } from './handlers/retry-job.js'
import { revokeToken } from './handlers/revoke-token.js'
import { runTriageRules } from './handlers/run-triage-rules.js'
import { streamEvents } from './handlers/stream-events.js'
import { triggerRecovery } from './handlers/trigger-recovery.js'
import { type Route, route } from './route.js'
import { because } from './schemas/common.js'
import * as letters from './schemas/dead-letter.js'
import * as desk from './schemas/desk.js'
import * as groups from './schemas/group.js'
import * as jobs from './schemas/job.js'
import * as queues from './schemas/queue.js'
import * as rates from './schemas/rate-limit.js'
import * as services from './schemas/service.js'
import * as triage from './schemas/triage.js'

export const BASE = '/api/queue-admin'

const LETTER = { tag: 'dead letters', params: letters.byId } as const
const JOB = { tag: 'jobs', params: letters.byId } as const
const QUEUE = { tag: 'queues', params: queues.byQueue } as const
const SERVICE = { tag: 'services', params: services.byName } as const

export const ROUTES: readonly Route[] = [
  route('get', '/statistics', {
    scope: 'read',
    tag: 'queues',
    summary: 'Counts of every queue by state, and of its dead letters by what became of them',
    response: queues.statistics,
    handle: getStatistics,
  }),
  route('get', '/dead-letter-queue', {
    scope: 'read',
    tag: 'dead letters',
    summary: 'Dead letters, newest death first',
    query: letters.deadLetterQuery,
    response: letters.deadLetterList,
    handle: listDeadLetters,
  }),
  route('get', '/dead-letter-queue/:id', {
    ...LETTER,
    scope: 'read',
    summary: 'One dead letter, with every attempt',
    response: letters.deadLetterWithAttempts,
    versioned: true,
    errors: ['NOT_FOUND'],
    handle: getDeadLetter,
  }),
  route('post', '/dead-letter-queue/:id/retry', {
    ...LETTER,
    scope: 'operate',
    summary: 'Sends it back to run; it stays, as `redriving`, until its job has ended',
    body: because,
    response: letters.deadLetter,
    errors: ['NOT_FOUND', 'NOT_PENDING', 'UNIQUE_KEY_TAKEN'],
    handle: retryDeadLetter,
  }),
  route('post', '/dead-letter-queue/:id/mark-failed', {
    ...LETTER,
    scope: 'operate',
    summary: 'Closes it for good',
    body: letters.markFailedBody,
    bodyRequired: true,
    response: letters.deadLetter,
    errors: ['NOT_FOUND', 'NOT_PENDING'],
    handle: markFailed,
  }),
  route('put', '/dead-letter-queue/:id/notes', {
    ...LETTER,
    scope: 'operate',
    summary: 'Notes, who looks after it, how urgent it is; null takes a text away',
    body: letters.notesBody,
    bodyRequired: true,
    response: letters.deadLetter,
    versioned: true,
    errors: ['NOT_FOUND', 'VERSION_CONFLICT'],
    handle: putNotes,
  }),
  route('post', '/queues/:queue/pause', {
    ...QUEUE,
    scope: 'operate',
    summary: 'Running jobs finish, none starts',
    body: because,
    response: queues.queueSettings,
    handle: pauseQueue,
  }),
  route('post', '/queues/:queue/resume', {
    ...QUEUE,
    scope: 'operate',
    summary: 'Its jobs start again',
    body: because,
    response: queues.queueSettings,
    errors: ['NOT_FOUND'],
    handle: resumeQueue,
  }),
  route('post', '/queues/:queue/clean', {
    ...QUEUE,
    scope: 'admin',
    summary: 'Removes jobs that ended longer than `grace` ago; open dead letters only with `includeOpen`',
    body: queues.cleanBody,
    bodyRequired: true,
    response: queues.cleaned,
    errors: ['NOT_FOUND'],
    handle: cleanQueue,
  }),
  route('post', '/trigger-recovery', {
    scope: 'operate',
    tag: 'recovery',
    summary: 'One recovery run now; 202: one was under way already',
    body: because,
    response: desk.recoveryRun,
    statuses: [200, 202],
    handle: triggerRecovery,
  }),
  route('get', '/recovery-status', {
    scope: 'read',
    tag: 'recovery',
    summary: 'How many recovery runs there were, and the last ones',
    response: desk.recoveryStatus,
    handle: getRecoveryStatus,
  }),

  route('get', '/jobs', {
    scope: 'read',
    tag: 'jobs',
    summary: 'Jobs wherever they are, newest first',
    query: jobs.jobQuery,
    response: jobs.jobList,
    handle: listJobs,
  }),
  route('post', '/jobs', {
    scope: 'operate',
    tag: 'jobs',
    summary: 'Puts a job in line; 200: its unique key is taken by a live one, whose id this is',
    body: jobs.enqueueBody,
    bodyRequired: true,
    response: jobs.enqueued,
    statuses: [201, 200],
    errors: ['PAYLOAD_TOO_LARGE', 'UNIQUE_KEY_CONTENDED'],
    handle: enqueueJob,
  }),
  route('get', '/jobs/:id', {
    ...JOB,
    scope: 'read',
    summary: 'One job, with its attempts',
    response: jobs.job,
    errors: ['NOT_FOUND'],
    handle: getJob,
  }),
  route('get', '/jobs/:id/explain', {
    ...JOB,
    scope: 'read',
    summary: 'Where it is and why, what comes next and when, in words',
    response: jobs.explanation,
    handle: explainJob,
  }),
  route('post', '/jobs/:id/cancel', {
    ...JOB,
    scope: 'operate',
    summary: 'Cancels one that waits; asks one that runs to stop',
    body: because,
    response: jobs.cancelled,
    errors: ['NOT_FOUND', 'NOT_CANCELLABLE'],
    handle: cancelJob,
  }),
  route('post', '/jobs/:id/retry', {
    ...JOB,
    scope: 'operate',
    summary: 'Sends a dead job back to run: the same as retrying its dead letter',
    body: because,
    response: letters.deadLetter,
    errors: ['NOT_FOUND', 'NOT_PENDING', 'UNIQUE_KEY_TAKEN'],
    handle: retryJob,
  }),

  route('post', '/dead-letter-queue/retry', {
    tag: 'dead letters',
    scope: 'operate',
    summary: 'Sends many back to run, by their ids; tells which of them could not be',
    body: letters.retryManyBody,
    bodyRequired: true,
    response: letters.redriven,
    handle: retryDeadLetters,
  }),
  route('get', '/queues', {
    scope: 'read',
    tag: 'queues',
    summary: 'Every queue with its counts',
    response: queues.queueList,
    handle: listQueues,
  }),
  route('get', '/queues/:queue/policy', {
    ...QUEUE,
    scope: 'read',
    summary: 'How its jobs are retried, and who said so',
    response: queues.policyAnswer,
    versioned: true,
    handle: getPolicy,
  }),
  route('put', '/queues/:queue/policy', {
    ...QUEUE,
    scope: 'admin',
    summary: 'Overrides what the code says; what is left out stays as the code has it',
    body: queues.policyBody,
    bodyRequired: true,
    response: queues.policyAnswer,
    versioned: true,
    errors: ['VERSION_CONFLICT'],
    handle: putPolicy,
  }),
  route('delete', '/queues/:queue/policy', {
    ...QUEUE,
    scope: 'admin',
    summary: 'What the code says holds again',
    body: because,
    response: queues.policyAnswer,
    versioned: true,
    errors: ['VERSION_CONFLICT'],
    handle: deletePolicy,
  }),

  route('get', '/groups', {
    scope: 'read',
    tag: 'groups',
    summary: 'Causes of failure, the one that failed last first',
    query: groups.groupQuery,
    response: groups.groupList,
    handle: listGroups,
  }),
  route('get', '/groups/:id', {
    tag: 'groups',
    scope: 'read',
    summary: 'One cause, with what it affects and how it looks',
    params: groups.byGroup,
    response: groups.group,
    versioned: true,
    errors: ['NOT_FOUND'],
    handle: getGroup,
  }),
  route('patch', '/groups/:id', {
    tag: 'groups',
    scope: 'operate',
    summary: 'Takes it on, resolves it, mutes it, notes something',
    params: groups.byGroup,
    body: groups.groupBody,
    bodyRequired: true,
    response: groups.group,
    versioned: true,
    errors: ['NOT_FOUND', 'VERSION_CONFLICT'],
    handle: patchGroup,
  }),
  route('get', '/failure-reasons', {
    scope: 'read',
    tag: 'groups',
    summary: 'What fails most, over the last day or the time that is asked for',
    query: groups.failureReasonsQuery,
    response: groups.failureReasons,
    handle: getFailureReasons,
  }),

  route('get', '/services', {
    scope: 'read',
    tag: 'services',
    summary: 'Every service with its breaker and what was seen of it',
    response: services.serviceList,
    handle: listServices,
  }),
  route('post', '/services/:name/isolate', {
    ...SERVICE,
    scope: 'operate',
    summary: 'Holds its jobs until it is released; running ones finish',
    body: because,
    response: services.service,
    errors: ['VERSION_CONFLICT'],
    handle: isolateService,
  }),
  route('post', '/services/:name/release', {
    ...SERVICE,
    scope: 'operate',
    summary: 'Its jobs run again, slowly at first',
    body: because,
    response: services.service,
    errors: ['VERSION_CONFLICT'],
    handle: releaseService,
  }),

  route('get', '/triage-rules', {
    scope: 'read',
    tag: 'triage',
    summary: 'Rules about dead letters, in the order in which they are asked',
    response: triage.triageRuleList,
    handle: listTriageRules,
  }),
  route('put', '/triage-rules/:name', {
    scope: 'admin',
    tag: 'triage',
    summary: 'Makes a rule, or changes the one of this name: what is left out stays as it is',
    params: triage.byRule,
    body: triage.triageRuleBody,
    bodyRequired: true,
    response: triage.triageRule,
    statuses: [200, 201],
    versioned: true,
    errors: ['NOT_FOUND', 'VERSION_CONFLICT'],
    handle: putTriageRule,
  }),
  route('delete', '/triage-rules/:name', {
    scope: 'admin',
    tag: 'triage',
    summary: 'Takes a rule away; what it did stays done',
    params: triage.byRule,
    body: because,
    response: triage.triageRuleList,
    versioned: true,
    errors: ['NOT_FOUND', 'VERSION_CONFLICT'],
    handle: deleteTriageRule,
  }),
  route('post', '/triage-rules/run', {
    scope: 'operate',
    tag: 'triage',
    summary: 'Runs the rules now; with `dryRun`, only says what they would do',
    body: triage.triageRunBody,
    response: triage.triageRun,
    errors: ['NOT_FOUND'],
    handle: runTriageRules,
  }),

  route('get', '/rate-limits', {
    scope: 'read',
    tag: 'rate limits',
    summary: 'Limits and keys that were used lately, with what is held for them',
    query: rates.rateLimitQuery,
    response: rates.rateLimitList,
    handle: listRateLimits,
  }),
  route('get', '/rate-limit-settings', {
    scope: 'read',
    tag: 'rate limits',
    summary: 'What was set at run time',
    response: rates.rateLimitSettings,
    handle: listRateLimitSettings,
  }),
  route('put', '/rate-limit-settings/:name', {
    scope: 'admin',
    tag: 'rate limits',
    summary: 'Beats what the code says of a limit, for all its keys or for one; the fleet follows at once',
    params: rates.byRateLimit,
    body: rates.rateLimitBody,
    bodyRequired: true,
    response: rates.rateLimitSettings,
    handle: putRateLimit,
  }),
  route('delete', '/rate-limit-settings/:name', {
    scope: 'admin',
    tag: 'rate limits',
    summary: 'What the code says holds again',
    params: rates.byRateLimit,
    body: rates.rateLimitKey,
    response: rates.rateLimitSettings,
    handle: deleteRateLimit,
  }),

  route('get', '/workers', {
    scope: 'read',
    tag: 'desk',
    summary: 'Workers that are live, newest first; with `ended`, those of the past as well',
    query: desk.workerQuery,
    response: desk.workerList,
    handle: listWorkers,
  }),
  route('get', '/audit', {
    scope: 'read',
    tag: 'desk',
    summary: 'Who changed what, newest first',
    query: desk.auditQuery,
    response: desk.auditList,
    handle: listAudit,
  }),
  route('get', '/events', {
    scope: 'read',
    tag: 'desk',
    summary:
      'What happens in the fleet, as it happens: server-sent events, with `Last-Event-ID` from where one left off',
    response: desk.events,
    produces: 'text/event-stream',
    errors: ['TOO_MANY_STREAMS', 'ALREADY_CLOSED'],
    handle: streamEvents,
  }),
  route('get', '/doctor', {
    scope: 'read',
    tag: 'desk',
    summary: 'What is wrong with the database, the ledger or its workers, and what to do about each',
    response: desk.diagnosis,
    handle: getDoctor,
  }),
  route('get', '/me', {
    scope: 'read',
    tag: 'desk',
    summary: 'Whose token this is, and what it may',
    response: desk.me,
    verbatim: true,
    handle: getMe,
  }),
  route('get', '/tokens', {
    scope: 'admin',
    tag: 'desk',
    summary: 'Tokens that were made, without their secrets',
    response: desk.tokenList,
    verbatim: true,
    handle: listTokens,
  }),
  route('post', '/tokens', {
    scope: 'admin',
    tag: 'desk',
    summary: 'Makes a token; its secret is shown this once',
    body: desk.tokenBody,
    bodyRequired: true,
    response: desk.madeToken,
    statuses: [201],
    errors: ['TOKEN_EXISTS'],
    verbatim: true,
    handle: createToken,
  }),
  route('delete', '/tokens/:name', {
    scope: 'admin',
    tag: 'desk',
    summary: 'Revokes a token',
    params: desk.byToken,
    body: because,
    response: desk.token,
    errors: ['NOT_FOUND'],
    verbatim: true,
    handle: revokeToken,
  }),

  route('get', '/queue-stats', {
    at: 'root',
    scope: 'read',
    tag: 'health',
    summary: 'Counts of every queue by state',
    response: queues.queueStats,
    handle: getQueueStats,
  }),
  route('get', '/health', {
    at: 'root',
    scope: 'read',
    tag: 'health',
    summary: 'How well it goes, with a score and the reasons; 503: it is unhealthy',
    response: desk.health,
    statuses: [200, 503],
    handle: getHealth,
  }),
  route('get', '/metrics', {
    at: 'root',
    scope: 'read',
    tag: 'health',
    summary: 'Metrics for Prometheus',
    response: desk.metrics,
    produces: 'text/plain',
    handle: getMetrics,
  }),
  route('get', '/healthz', {
    at: 'root',
    scope: 'none',
    tag: 'health',
    summary: 'This process answers',
    response: desk.alive,
    verbatim: true,
    handle: getAlive,
  }),
]
