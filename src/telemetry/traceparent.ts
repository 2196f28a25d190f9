// Where a job came from, in the 55 characters of a W3C `traceparent`. What is kept with a job may have been written by anyone:
// what is not one is passed over.
import { isSpanContextValid, type Link, type SpanContext } from '@opentelemetry/api'

const SHAPE = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/

export function traceparentOf(from: SpanContext): string | undefined {
  if (!isSpanContextValid(from)) return undefined
  return `00-${from.traceId}-${from.spanId}-${from.traceFlags.toString(16).padStart(2, '0')}`
}

export function linkTo(traceparent: string | undefined): Link[] {
  const [, traceId = '', spanId = '', flags = ''] = SHAPE.exec(traceparent ?? '') ?? []
  const context = { traceId, spanId, traceFlags: Number.parseInt(flags || '0', 16), isRemote: true }
  return isSpanContextValid(context) ? [{ context }] : []
}
