import { z } from '@hono/zod-openapi'
import { DECISIONS } from '../../domain/decision.js'
import { KINDS } from '../../domain/failure.js'
import { RECOVERY_STATUSES } from '../../domain/lifecycle.js'
import { LIMITS } from '../../domain/limits.js'
import { OUTCOMES } from '../../domain/outcome.js'
import { LARGEST_OFFSET, MOST_BY_ID } from '../../operator/dead-letters.js'
import { id, json, key, listOf, page, priority, reason, text, time, when, whole } from './common.js'

export const kind = z.enum(KINDS)
export const outcome = z.enum(OUTCOMES)

export const cause = z.strictObject({ type: z.string(), message: z.string(), code: z.string().optional() })

export const attempt = z
  .strictObject({
    number: z.number().int(),
    round: z.number().int(),
    outcome,
    decision: z.enum(DECISIONS),
    reason: z.string(),
    kind: kind.optional(),
    because: z.string().optional(),
    errorType: z.string().optional(),
    errorCode: z.string().optional(),
    message: z.string().optional(),
    stack: z.string().optional(),
    causes: z.array(cause),
    httpStatus: z.number().int().optional(),
    retryAfterMs: z.number().optional(),
    service: z.string().optional(),
    fingerprint: z.string().optional(),
    delayMs: z.number().optional(),
    nextRunAt: time.optional(),
    worker: z.string().optional(),
    startedAt: time.optional(),
    finishedAt: time,
    staleOutcome: outcome.optional(),
  })
  .openapi('Attempt')

const brief = {
  id,
  queue: z.string(),
  name: z.string(),
  status: z.enum(RECOVERY_STATUSES),
  reason: z.string(),
  kind,
  because: z.string(),
  outcome,
  errorType: z.string(),
  errorCode: z.string().optional(),
  message: z.string(),
  httpStatus: z.number().int().optional(),
  service: z.string().optional(),
  fingerprint: z.string(),
  totalAttempts: z.number().int(),
  maxAttempts: z.number().int().optional(),
  lost: z.number().int(),
  recoveryAttempts: z.number().int(),
  jobPriority: z.number().int(),
  uniqueKey: z.string().optional(),
  tenant: z.string().optional(),
  user: z.string().optional(),
  project: z.string().optional(),
  notes: z.string().optional(),
  assignedTo: z.string().optional(),
  priority: z.number().int(),
  resolution: z.string().optional(),
  createdAt: time,
  diedAt: time,
  updatedAt: time,
  redrivenAt: time.optional(),
  resolvedAt: time.optional(),
}

/** As a list has it: without payload, stack and causes, which may be large. */
export const deadLetterBrief = z.strictObject(brief).openapi('DeadLetterBrief')

const everything = { ...brief, payload: json, stack: z.string().optional(), causes: z.array(cause) }
export const deadLetter = z.strictObject(everything).openapi('DeadLetter')
export const deadLetterWithAttempts = z
  .strictObject({ ...everything, attempts: z.array(attempt) })
  .openapi('DeadLetterWithAttempts')

export const deadLetterList = listOf(deadLetterBrief).openapi('DeadLetterList')

export const deadLetterQuery = z.strictObject({
  ...page,
  offset: whole(0, LARGEST_OFFSET).optional(),
  queue: key.optional(),
  name: key.optional(),
  kind: kind.optional(),
  service: key.optional(),
  status: z.enum(RECOVERY_STATUSES).optional(),
  group: key.optional(),
  assignedTo: key.optional(),
  since: when.optional(),
  until: when.optional(),
  q: key.optional(),
})

export const byId = z.strictObject({ id })

export const retryManyBody = z.strictObject({
  ids: z.array(id).min(1).max(MOST_BY_ID),
  reason: reason.optional(),
})
export const redriven = z
  .strictObject({
    redriven: z.array(id),
    conflicts: z.array(id).openapi({ description: 'another live job holds their unique key' }),
    notOpen: z.array(id).openapi({ description: 'not open any more, or not there' }),
  })
  .openapi('Redriven')

export const markFailedBody = z.strictObject({
  reason: reason.refine(value => value.trim() !== '', 'must say why'),
})

export const notesBody = z
  .strictObject({
    notes: text(LIMITS.notesChars).nullable().optional(),
    assignedTo: text(LIMITS.nameChars).nullable().optional(),
    priority: priority.optional(),
  })
  .refine(change => Object.keys(change).length > 0, 'must have at least one of notes, assignedTo, priority')
