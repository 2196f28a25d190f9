// A batch of failures is mostly one cause: the same error from the same place, again and again, with another number in its
// message. What such records have in common travels once, as a shape; each one says which shape it is like, and what is its
// own (message, reason, delay). A stack is the text before the message, the message, and the frames after it.
import { listOf } from '../rows.js'
import type { Recorded } from './record.js'

/** What the functions `bury` and `defer` take of it, each list in the order of the batch (0014_failed_batches.sql). */
interface Ends {
  readonly shapes: readonly object[]
  /** Counted from one. */
  readonly likes: string
  readonly messages: readonly (string | undefined)[]
  /** Missing where each has the reason of its shape; so are the delays where there are none. */
  readonly reasons?: readonly (string | undefined)[]
  readonly delays?: string
}

/** The same, as parameters. */
export const paramsOf = ({ likes, shapes, messages, reasons }: Ends) => ({
  likes,
  shapes: JSON.stringify(shapes),
  messages: JSON.stringify(messages),
  reasons: reasons ? JSON.stringify(reasons) : null,
})

interface Shape {
  readonly nth: number
  readonly first: Recorded
  readonly more: object | undefined
  /** Around the message; a stack that does not show it is all `after`. */
  readonly before: string | undefined
  readonly after: string | undefined
}

/** A cause that looks different each time is compared with no more than these. */
const MOST_COMPARED = 8

/** `more`: what each says beyond its record. */
export function shareFailures(rows: readonly Recorded[], more?: readonly object[]): Ends {
  const byFingerprint = new Map<string | undefined, Shape[]>()
  const shapes: object[] = []
  const like = rows.map((row, index) => {
    const alike = byFingerprint.get(row.fingerprint)
    const known = alike?.find(shape => fits(row, more?.[index], shape))
    if (known) return known
    const shape = shapeOf(row, more?.[index], shapes.length + 1)
    shapes.push(asTravels(shape))
    if (!alike) byFingerprint.set(row.fingerprint, [shape])
    else if (alike.length < MOST_COMPARED) alike.push(shape)
    return shape
  })
  const reasons = rows.map(({ reason }, index) => (reason === like[index]?.first.reason ? undefined : reason))
  return {
    shapes,
    likes: listOf(like.map(({ nth }) => String(nth))),
    messages: rows.map(({ message }) => message),
    ...(reasons.some(reason => reason !== undefined) && { reasons }),
    ...(more && { delays: listOf(rows.map(({ delay_ms }) => (delay_ms === undefined ? 'NULL' : String(delay_ms)))) }),
  }
}

function shapeOf(first: Recorded, more: object | undefined, nth: number): Shape {
  const { stack, message } = first
  const at = stack === undefined || message === undefined ? -1 : stack.indexOf(message)
  if (stack === undefined || message === undefined || at < 0)
    return { nth, first, more, before: undefined, after: stack }
  return { nth, first, more, before: stack.slice(0, at), after: stack.slice(at + message.length) }
}

const asTravels = ({ first, more, before, after }: Shape): object => {
  const { id: _, lease: __, message: ___, stack: ____, delay_ms: _____, ...shared } = first
  return { ...shared, before, after, ...more }
}

const fits = (row: Recorded, more: object | undefined, { first, more: others, before, after }: Shape): boolean =>
  isSame(row, first) && isSameMore(more, others) && hasStack(row, before, after)

function isSame(one: Recorded, other: Recorded): boolean {
  for (const field of COMPARED) if (one[field] !== other[field]) return false
  return true
}

function isSameMore(one: object | undefined, other: object | undefined): boolean {
  for (const key in one) if (one[key as never] !== other?.[key as never]) return false
  return true
}

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

/** All but what is each one's own: a new column does not compile until it is named here. */
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
