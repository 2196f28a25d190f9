// Triage rules: what they match, what they do, and what a run of them did.
import { z } from '@hono/zod-openapi'
import { LIMITS } from '../../domain/limits.js'
import { id, key, listOf, name, priority, reason, text, time } from './common.js'
import { kind } from './dead-letter.js'

const ms = z.number().int().min(0).max(LIMITS.delayMs)
const words = (most: number) => text(most).refine(value => value.trim() !== '', 'must be more than blanks')

const match = z
  .strictObject({
    kind: kind.optional(),
    group: words(LIMITS.keyChars).optional(),
    text: words(LIMITS.keyChars).optional(),
    queue: words(LIMITS.keyChars).optional(),
    name: words(LIMITS.keyChars).optional(),
    service: words(LIMITS.keyChars).optional(),
    olderThanMs: ms.optional(),
  })
  .refine(
    conditions => Object.values(conditions).some(value => value !== undefined),
    'must have at least one condition',
  )
  .openapi('TriageMatch')

const action = z
  .discriminatedUnion('type', [
    z.strictObject({ type: z.literal('retry'), afterMs: ms }),
    z.strictObject({ type: z.literal('discard'), reason: words(LIMITS.reasonChars) }),
    z.strictObject({ type: z.literal('assign'), to: words(LIMITS.nameChars) }),
    z.strictObject({ type: z.literal('prioritise'), priority }),
    z.strictObject({ type: z.literal('escalate'), message: words(LIMITS.reasonChars) }),
  ])
  .openapi('TriageAction')

const limits = {
  position: z.number().int().min(0).max(1_000_000),
  maxPerRun: z.number().int().min(1).max(10_000),
  maxPerLetter: z.number().int().min(1).max(20),
}

export const triageRule = z
  .strictObject({
    id: z.string(),
    name: z.string(),
    match,
    action,
    enabled: z.boolean(),
    position: z.number().int(),
    maxPerRun: z.number().int(),
    maxPerLetter: z.number().int(),
    version: z.number().int(),
    createdAt: time,
    createdBy: z.string(),
    updatedAt: time,
    updatedBy: z.string(),
  })
  .openapi('TriageRule')
export const triageRuleList = listOf(triageRule).openapi('TriageRuleList')
export const byRule = z.strictObject({ name })

export const triageRuleBody = z.strictObject({
  match,
  action,
  enabled: z.boolean().optional(),
  position: limits.position.optional(),
  maxPerRun: limits.maxPerRun.optional(),
  maxPerLetter: limits.maxPerLetter.optional(),
  reason: reason.optional(),
})

export const triageRunBody = z
  .strictObject({ dryRun: z.boolean().optional(), rule: key.optional(), reason: reason.optional() })
  .refine(({ dryRun, rule }) => rule === undefined || dryRun === true, 'must have dryRun: true with a rule')

export const triageRun = z
  .strictObject({
    dryRun: z.boolean(),
    looked: z.number().int(),
    complete: z.boolean(),
    rules: z.array(
      z.strictObject({
        rule: z.string(),
        action: z.string(),
        acted: z.number().int(),
        conflicts: z.number().int(),
        waiting: z.number().int(),
        sample: z.array(z.strictObject({ id, queue: z.string(), name: z.string(), message: z.string() })),
      }),
    ),
  })
  .openapi('TriageRun')
