// Errors that say their kind themselves: ours, and any that carries a `kind` we know (a second copy of this
// package in the same process makes classes that `instanceof` does not recognise).
import { ERROR_CODES, type ErrorCode } from '../../domain/errors.js'
import { isKind, type Kind } from '../../domain/failure.js'
import { prop, textProp } from '../read.js'
import type { Source } from './evidence.js'

/** Complete by type: a new code does not compile until it is judged here. */
export const CODE_KINDS: Readonly<Record<ErrorCode, Kind>> = {
  SETTING_INVALID: 'permanent',
  PAYLOAD_INVALID: 'validation',
  PAYLOAD_TOO_LARGE: 'validation',
  PAYLOAD_NOT_SERIALISABLE: 'validation',
  RESULT_NOT_SERIALISABLE: 'permanent',
  RESULT_TOO_LARGE: 'permanent',
  DATABASE_UNREACHABLE: 'network',
  BROKER_UNAVAILABLE: 'network',
  DATABASE_TOO_OLD: 'permanent',
  // A rollout in progress: the next worker may be the new one.
  SCHEMA_NEWER: 'system',
  SCHEMA_PENDING: 'permanent',
  SCHEMA_CHANGED: 'permanent',
  LEDGER_LOCKED: 'system',
  STATEMENT_TIMEOUT: 'transient',
  NOT_FOUND: 'permanent',
  NOT_PENDING: 'permanent',
  NOT_CANCELLABLE: 'permanent',
  UNIQUE_KEY_TAKEN: 'transient',
  UNIQUE_KEY_CONTENDED: 'transient',
  VERSION_CONFLICT: 'transient',
  FILTER_REQUIRED: 'validation',
  // It may be starting, on this worker or on another.
  HANDLER_MISSING: 'transient',
  ALREADY_CLOSED: 'system',
  AMBIGUOUS_INSTANCE: 'permanent',
  LEASE_LOST: 'transient',
  TIMED_OUT: 'transient',
  SHUTTING_DOWN: 'transient',
  SERVICE_HELD: 'transient',
  CANCELLED: 'permanent',
  CANCEL_REQUESTED: 'permanent',
  REQUEST_INVALID: 'validation',
  UNAUTHENTICATED: 'authentication',
  FORBIDDEN: 'authentication',
  THROTTLED: 'rate_limited',
  TOO_MANY_STREAMS: 'rate_limited',
  METHOD_NOT_ALLOWED: 'permanent',
  BODY_TOO_LARGE: 'validation',
  MEDIA_TYPE_UNSUPPORTED: 'validation',
  IDEMPOTENCY_KEY_REUSED: 'permanent',
  REQUEST_UNDER_WAY: 'transient',
  TOKEN_EXISTS: 'permanent',
  TAKES_TOO_LONG: 'transient',
  INTERNAL: 'system',
}

export const own: Source = ({ error, type, code }) => {
  const kind = prop(error, 'kind')
  if (isKind(kind) && kind !== 'lost') {
    const service = textProp(error, 'service')
    return { kind, because: `${type} says so itself`, ...(service !== undefined && { service }) }
  }
  if (type !== 'RedriveError' || code === undefined || !Object.hasOwn(ERROR_CODES, code)) return undefined
  return { kind: CODE_KINDS[code as ErrorCode], because: `Redrive's own error ${code}` }
}
