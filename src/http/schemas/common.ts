// Shapes that many routes share: names, times, pages, problems.
import { z } from '@hono/zod-openapi'
import { LIMITS } from '../../domain/limits.js'
import { isName } from '../../domain/names.js'
import { SCOPES } from '../../domain/scope.js'

const storable = (text: string) => !text.includes('\0') && text.isWellFormed()

/** Text that Postgres can store. */
export const text = (most: number) =>
  z.string().max(most).refine(storable, 'must be well-formed text without NUL characters')

export const name = text(LIMITS.nameChars).min(1).refine(isName, 'must be without control characters')
export const key = text(LIMITS.keyChars).min(1)
export const reason = text(LIMITS.reasonChars)
export const id = z.uuid()
export const priority = z.number().int().min(0).max(10)

const LAST_MS = Date.UTC(9999, 11, 31, 23, 59, 59)

/** A time in a request. */
export const when = z.iso
  .datetime({ offset: true, message: 'must be a time as RFC 3339 has it, such as 2026-01-31T12:00:00Z' })
  .transform(value => new Date(value))
  .refine(value => value.getTime() >= 0 && value.getTime() <= LAST_MS, 'must be from 1970 to 9999')
  .openapi({ type: 'string', format: 'date-time' })

/** A time in an answer: UTC. */
export const time = z.iso.datetime()

/** Any JSON. */
export const json = z.unknown().openapi({ description: 'any JSON' })

/** A whole number in a query. */
export const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, `must be a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine(value => value >= least && value <= most, `must be a whole number from ${least} to ${most}`)
    .openapi({ type: 'integer', minimum: least, maximum: most })

export const yesNo = z
  .enum(['true', 'false'])
  .transform(value => value === 'true')
  .openapi({ type: 'boolean' })

export const page = {
  limit: whole(1, 200).optional(),
  cursor: text(4_096).min(1).optional(),
}

export const total = z
  .strictObject({ value: z.number().int(), exact: z.boolean() })
  .openapi('Total', { description: '`exact: false`: there are at least so many' })

export const listOf = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ items: z.array(item), nextCursor: z.string().nullable(), total })

/** The body of a change that needs nothing but, if one likes, a reason. */
export const because = z.strictObject({ reason: reason.optional() }).openapi('Because')

export const scope = z.enum(SCOPES)

export const problem = z
  .looseObject({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    code: z.string(),
    detail: z.string(),
    requestId: z.string().optional(),
    issues: z.array(z.strictObject({ in: z.string(), field: z.string(), message: z.string() })).optional(),
  })
  .openapi('Problem')
