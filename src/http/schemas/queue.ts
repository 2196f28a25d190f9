import { z } from '@hono/zod-openapi'
import { KINDS } from '../../domain/failure.js'
import { LIMITS } from '../../domain/limits.js'
import { POLICY_SOURCES } from '../../policy/policy-layers.js'
import { json, listOf, name, reason, time } from './common.js'

const count = z.number().int().min(0)

export const queueStatistics = z
  .strictObject({
    queue_name: z.string(),
    waiting_count: count,
    active_count: count,
    completed_count: count,
    failed_count: count,
    retryable_count: count,
    scheduled_count: count,
    held_count: count,
    cancelled_count: count,
    oldest_waiting_at: time.nullable(),
    paused: z.boolean(),
  })
  .openapi('QueueStatistics')

export const deadLetterSummary = z
  .strictObject({
    queue_name: z.string(),
    total_failed_jobs: count,
    pending_recovery: count,
    redriving: count,
    recovered: count,
    permanently_failed: count,
  })
  .openapi('DeadLetterSummary')

export const statistics = z
  .strictObject({
    queueStatistics: z.array(queueStatistics),
    deadLetterQueueSummary: z.array(deadLetterSummary),
  })
  .openapi('Statistics')

export const queueStats = z.strictObject({ queueStatistics: z.array(queueStatistics) }).openapi('QueueStats')

export const queueSettings = z
  .strictObject({
    name: z.string(),
    paused: z.boolean(),
    pausedAt: time.optional(),
    pausedBy: z.string().optional(),
  })
  .openapi('Queue')

export const queueList = listOf(
  z
    .strictObject({
      queue: z.string(),
      waiting: count,
      active: count,
      scheduled: count,
      retrying: count,
      held: count,
      completed: count,
      cancelled: count,
      dead: count,
      oldestWaitingAt: time.nullable(),
      paused: z.boolean(),
    })
    .openapi('QueueCounts'),
).openapi('QueueList')

export const byQueue = z.strictObject({ queue: name })

export const cleanBody = z.strictObject({
  grace: z.number().int().min(0).max(LIMITS.delayMs).openapi({ description: 'milliseconds' }),
  status: z.enum(['completed', 'cancelled', 'dead']),
  includeOpen: z.boolean().optional(),
  reason: reason.optional(),
})
export const cleaned = z.strictObject({ removed: count }).openapi('Cleaned')

const ms = z.number().min(0).max(LIMITS.delayMs)
const BACKOFFS = [
  z.strictObject({ type: z.literal('exponential'), initialMs: ms, factor: z.number(), maxMs: ms.optional() }),
  z.strictObject({ type: z.literal('linear'), initialMs: ms, stepMs: ms, maxMs: ms.optional() }),
  z.strictObject({ type: z.literal('fixed'), delayMs: ms }),
  z.strictObject({ type: z.literal('immediate') }),
  z.strictObject({ type: z.literal('delays'), delaysMs: z.array(ms).min(1).max(1_000) }),
] as const
const backoff = z.discriminatedUnion('type', BACKOFFS).openapi('Backoff')
/** Code may have one of its own, which cannot be shown. */
const anyBackoff = z.discriminatedUnion('type', [...BACKOFFS, z.strictObject({ type: z.literal('custom') })])

const forEachKind = <Each extends z.ZodType>(each: Each) =>
  z.strictObject(Object.fromEntries(KINDS.map(kind => [kind, each])) as Record<(typeof KINDS)[number], Each>)

/** Only what differs. What else it may be is checked where policies are made. */
export const policyBody = z.strictObject({
  attempts: z.number().int().min(1).max(1_000).optional(),
  backoff: backoff.optional(),
  jitter: z.boolean().optional(),
  minMs: ms.int().optional(),
  maxMs: ms.int().optional(),
  totalMs: ms.int().min(1).nullable().optional(),
  timeoutMs: z
    .number()
    .int()
    .min(1)
    .max(2 ** 31 - 1)
    .optional(),
  retryKinds: forEachKind(z.boolean().optional()).optional(),
  deadLetter: z.boolean().optional(),
  lostLimit: z.number().int().min(1).max(100).optional(),
  reason: reason.optional(),
})

const version = z
  .strictObject({
    scope: z.enum(['queue', 'job']),
    target: z.string(),
    version: z.number().int(),
    policy: json.openapi({ description: 'null: with this version it was taken away' }),
    setAt: time,
    setBy: z.string(),
    reason: z.string().optional(),
  })
  .openapi('PolicyVersion')

const source = z.enum(POLICY_SOURCES)

export const policyAnswer = z
  .strictObject({
    policy: z.strictObject({
      attempts: z.number(),
      backoff: anyBackoff,
      jitter: z.boolean(),
      minMs: z.number(),
      maxMs: z.number(),
      totalMs: z.number().nullable(),
      timeoutMs: z.number(),
      retryKinds: forEachKind(z.boolean()),
      deadLetter: z.boolean(),
      lostLimit: z.number(),
    }),
    sources: z.strictObject({
      attempts: source,
      backoff: source,
      jitter: source,
      minMs: source,
      maxMs: source,
      totalMs: source,
      timeoutMs: source,
      retryKinds: forEachKind(source),
      deadLetter: source,
      lostLimit: source,
    }),
    layers: z.unknown().openapi({ description: 'what each voice said, as it said it' }),
    versions: z.strictObject({ queue: z.number().int(), job: z.number().int() }),
    set: z.strictObject({ queue: version.optional(), job: version.optional() }),
  })
  .openapi('PolicyAnswer')
