// A batch of failures is mostly one cause: the same error from the same place, again and again, with another number in its
// message. Such a record travels whole once; the others only say who they are, what is their own (message, reason, delay),
// and the lease of the one that they are like. A stack is the text before the message, the message, and the frames after it.
import { RECORD_INPUT, type Recorded } from './record.js'

interface Shape {
  readonly first: Recorded
  /** Around the message; a stack that does not show it is all `after`. */
  readonly before: string | undefined
  readonly after: string | undefined
}

/** A cause that looks different each time is compared with no more than these. */
const MOST_COMPARED = 8

/** `more`: what each row says beyond its record, whether it is like another or not. */
export function shareFailures(rows: readonly Recorded[], more?: readonly object[]): object[] {
  const byFingerprint = new Map<string | undefined, Shape[]>()
  return rows.map((row, index) => {
    const { id, lease, message, reason, delay_ms, fingerprint } = row
    const alike = byFingerprint.get(fingerprint) ?? []
    const shape = alike.find(known => fits(row, known))
    if (shape) {
      const { first } = shape
      const why = reason === first.reason ? undefined : reason
      return { id, lease, message, reason: why, delay_ms, ...more?.[index], like: first.lease }
    }
    if (alike.length < MOST_COMPARED) byFingerprint.set(fingerprint, [...alike, shapeOf(row)])
    return more ? { ...row, ...more[index] } : row
  })
}

function shapeOf(first: Recorded): Shape {
  const { stack, message } = first
  const at = stack === undefined || message === undefined ? -1 : stack.indexOf(message)
  if (stack === undefined || message === undefined || at < 0) return { first, before: undefined, after: stack }
  return { first, before: stack.slice(0, at), after: stack.slice(at + message.length) }
}

const fits = (row: Recorded, { first, before, after }: Shape): boolean =>
  COMPARED.every(field => row[field] === first[field]) && hasStack(row, before, after)

function hasStack({ stack, message }: Recorded, before: string | undefined, after: string | undefined): boolean {
  if (before === undefined || after === undefined || stack === undefined || message === undefined) {
    return before === undefined && stack === after
  }
  return (
    stack.length === before.length + message.length + after.length &&
    stack.startsWith(before) &&
    stack.startsWith(message, before.length) &&
    stack.endsWith(after)
  )
}

const SHARED: Readonly<
  Record<Exclude<keyof Recorded, 'id' | 'lease' | 'message' | 'stack' | 'reason' | 'delay_ms'>, true>
> = {
  outcome: true,
  decision: true,
  kind: true,
  because: true,
  error_type: true,
  error_code: true,
  causes: true,
  http_status: true,
  retry_after_ms: true,
  service: true,
  fingerprint: true,
}
const COMPARED = Object.keys(SHARED) as (keyof typeof SHARED)[]

// Whole ones are known by their outcome and not by having no `like`: the planner takes nulls for rare, and would loop.
/**
 * The CTE `input`, as if each record of `$1` had travelled whole; one that is like no other has. `more`: what each says beyond
 * its record, by column and type.
 */
export const sharedInput = (more: Readonly<Record<string, string>> = {}): string => `
  given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::json)
      AS t(${[RECORD_INPUT, ...Object.entries(more).map(([column, type]) => `${column} ${type}`)].join(', ')}, "like" bigint)
  ), shape AS MATERIALIZED (
    SELECT *, CASE WHEN shown > 0 THEN left(stack, shown - 1) END AS before,
      CASE WHEN shown > 0 THEN substr(stack, shown + char_length(message)) ELSE stack END AS after
    FROM (
      SELECT *, CASE WHEN lease IN (SELECT "like" FROM given) THEN strpos(stack, message) END AS shown
      FROM given WHERE outcome IS NOT NULL OFFSET 0
    ) whole
  ), input AS MATERIALIZED (
    SELECT g.id, g.lease, s.outcome, s.decision, coalesce(g.reason, s.reason) AS reason, s.kind, s.because, s.error_type, s.error_code, g.message,
      CASE WHEN s.before IS NULL THEN s.after ELSE s.before || g.message || s.after END AS stack, s.causes, s.http_status,
      s.retry_after_ms, s.service, s.fingerprint, g.delay_ms${Object.keys(more)
        .map(column => `, g.${column}`)
        .join('')}
    FROM given g JOIN shape s ON s.lease = coalesce(g."like", g.lease)
  )`
