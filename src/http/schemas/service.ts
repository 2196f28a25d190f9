import { z } from '@hono/zod-openapi'
import { BREAKER_STATES } from '../../domain/breaker.js'
import { json, listOf, name, time } from './common.js'
import { kind } from './dead-letter.js'

const breaker = z.strictObject({
  enabled: z.boolean(),
  shadow: z.boolean(),
  consecutiveFailures: z.number(),
  failureRate: z.number(),
  windowMs: z.number(),
  minimumVolume: z.number(),
  kinds: z.array(kind),
  openMs: z.number(),
  openFactor: z.number(),
  openMaxMs: z.number(),
  jitter: z.number(),
  probes: z.number(),
  probesToClose: z.number(),
  probeTimeoutMs: z.number(),
  releasePerSecond: z.number(),
  releaseDoublingMs: z.number(),
  releaseMs: z.number(),
})
const budget = z.strictObject({
  enabled: z.boolean(),
  share: z.number(),
  windowMs: z.number(),
  floorPerSecond: z.number(),
})

export const service = z
  .strictObject({
    service: z.string(),
    state: z.enum(BREAKER_STATES),
    since: time.nullable(),
    reason: z.string(),
    changedBy: z.string(),
    shadow: z.boolean(),
    openUntil: time.nullable(),
    openings: z.number().int(),
    version: z.number().int(),
    counts: z.strictObject({
      firstAttempts: z.number(),
      retries: z.number(),
      succeeded: z.number(),
      failed: z.number(),
    }),
    settings: z.strictObject({ breaker, budget }),
    override: json.openapi({ description: 'what a person set; null: nothing' }),
    overrideVersion: z.number().int(),
  })
  .openapi('Service')

export const serviceList = listOf(service).openapi('ServiceList')
export const byName = z.strictObject({ name })
