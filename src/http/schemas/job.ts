import { z } from '@hono/zod-openapi'
import { STATES } from '../../domain/lifecycle.js'
import { LIMITS } from '../../domain/limits.js'
import { id, json, key, listOf, name, page, priority, time, when } from './common.js'
import { attempt } from './dead-letter.js'

const state = z.enum(STATES)

const shared = {
  id,
  state,
  queue: z.string(),
  name: z.string(),
  priority: z.number().int(),
  attempt: z.number().int(),
  service: z.string().optional(),
  tenant: z.string().optional(),
  user: z.string().optional(),
  project: z.string().optional(),
  createdAt: time,
  runAt: time.optional(),
  finishedAt: time.optional(),
}

/** As a list has it: without its payload, which may be large. */
export const jobBrief = z.strictObject(shared).openapi('JobBrief')
export const jobList = listOf(jobBrief).openapi('JobList')

export const job = z
  .strictObject({
    ...shared,
    payload: json,
    maxAttempts: z.number().int().optional(),
    snoozes: z.number().int(),
    holds: z.number().int(),
    interruptions: z.number().int(),
    lost: z.number().int(),
    redrives: z.number().int(),
    result: json.optional(),
    progress: json.optional(),
    reason: z.string().optional(),
    uniqueKey: z.string().optional(),
    claimedAt: time.optional(),
    cancelRequested: z.literal(true).optional(),
    attempts: z.array(attempt),
  })
  .openapi('Job')

/** Where it is and why. What it carries, and by which policy, is asked for elsewhere. */
export const explanation = z
  .strictObject({
    id,
    state: z.enum([...STATES, 'unknown']),
    text: z.string(),
    sentences: z.array(z.string()),
    obstacle: z
      .enum(['paused', 'breaker', 'budget', 'rate_limit', 'no_worker', 'unknown_job', 'lease_over'])
      .optional()
      .openapi({ description: 'what holds it up, if anything does' }),
    next: z.strictObject({
      what: z.enum(['run', 'retry', 'look_again', 'finish', 'rescue', 'cancel', 'decide', 'nothing']),
      at: time.optional(),
    }),
    attempts: z.strictObject({ made: z.number().int(), allowed: z.number().int(), left: z.number().int() }).optional(),
    workers: z.number().int().optional().openapi({ description: 'live workers of its queue' }),
  })
  .openapi('Explanation')

export const jobQuery = z.strictObject({
  ...page,
  state: state.optional(),
  queue: key.optional(),
  name: key.optional(),
  tenant: key.optional(),
})

export const enqueueBody = z.strictObject({
  name,
  queue: name.optional(),
  payload: json,
  delayMs: z.number().min(0).max(LIMITS.delayMs).optional(),
  runAt: when.optional(),
  priority: priority.optional(),
  tenant: key.optional(),
  user: key.optional(),
  project: key.optional(),
  uniqueKey: key.optional(),
})

export const enqueued = z.strictObject({ id, deduplicated: z.boolean() }).openapi('Enqueued')
export const cancelled = z.strictObject({ id, result: z.enum(['cancelled', 'requested']) }).openapi('Cancelled')
