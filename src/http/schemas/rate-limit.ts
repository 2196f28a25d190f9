// Rate limits: how they stand, and what was set for them at run time.
import { z } from '@hono/zod-openapi'
import { LIMITS } from '../../domain/limits.js'
import { listOf, name, page, reason, text, time } from './common.js'

const count = z.number().int().min(0)

export const rateLimitList = listOf(
  z
    .strictObject({
      name: z.string(),
      key: z.string().openapi({ description: 'empty: the limit has no key' }),
      nextAt: time.openapi({ description: 'the next start that nobody has; in the past: at once' }),
      held: count.openapi({ description: 'jobs that are held for it, up to 10,000' }),
    })
    .openapi('RateLimitState'),
).openapi('RateLimitList')
export const rateLimitQuery = z.strictObject({ ...page, name: name.optional() })

export const rateLimitSettings = listOf(
  z
    .strictObject({
      name: z.string(),
      key: z.string().optional().openapi({ description: 'left out: all keys' }),
      limit: count,
      intervalMs: count,
      burst: count,
      setAt: time,
      setBy: z.string(),
    })
    .openapi('RateLimitSetting'),
).openapi('RateLimitSettings')

export const byRateLimit = z.strictObject({ name })

/** Of one key, or of all that have none of their own. */
const of = { key: text(LIMITS.keyChars).optional(), reason: reason.optional() }
export const rateLimitBody = z.strictObject({
  limit: z.number().int(),
  intervalMs: z.number().int(),
  burst: z.number().int().optional(),
  ...of,
})
export const rateLimitKey = z.strictObject(of)
