// Errors as they leave: application/problem+json with a stable code, and never a stack. The registry's codes are given
// their HTTP status here and nowhere else.
import { type ErrorCode, isRedriveError, RedriveError } from '../domain/errors.js'

/** Complete by type: a new code does not compile until it has its status here. */
export const STATUS_OF: Readonly<Record<ErrorCode, number>> = {
  SETTING_INVALID: 400,
  PAYLOAD_INVALID: 400,
  PAYLOAD_TOO_LARGE: 413,
  PAYLOAD_NOT_SERIALISABLE: 400,
  RESULT_NOT_SERIALISABLE: 500,
  RESULT_TOO_LARGE: 500,
  DATABASE_UNREACHABLE: 503,
  BROKER_UNAVAILABLE: 503,
  DATABASE_TOO_OLD: 503,
  SCHEMA_NEWER: 503,
  SCHEMA_PENDING: 503,
  SCHEMA_CHANGED: 503,
  LEDGER_LOCKED: 503,
  STATEMENT_TIMEOUT: 503,
  NOT_FOUND: 404,
  NOT_PENDING: 409,
  NOT_CANCELLABLE: 409,
  UNIQUE_KEY_TAKEN: 409,
  UNIQUE_KEY_CONTENDED: 409,
  VERSION_CONFLICT: 412,
  FILTER_REQUIRED: 400,
  HANDLER_MISSING: 409,
  ALREADY_CLOSED: 503,
  AMBIGUOUS_INSTANCE: 500,
  LEASE_LOST: 500,
  TIMED_OUT: 503,
  SHUTTING_DOWN: 503,
  SERVICE_HELD: 503,
  CANCELLED: 409,
  CANCEL_REQUESTED: 409,
  REQUEST_INVALID: 400,
  UNAUTHENTICATED: 401,
  FORBIDDEN: 403,
  THROTTLED: 429,
  TOO_MANY_STREAMS: 429,
  METHOD_NOT_ALLOWED: 405,
  BODY_TOO_LARGE: 413,
  MEDIA_TYPE_UNSUPPORTED: 415,
  IDEMPOTENCY_KEY_REUSED: 422,
  REQUEST_UNDER_WAY: 409,
  TOKEN_EXISTS: 409,
  TAKES_TOO_LONG: 503,
  INTERNAL: 500,
}

const TITLES: Readonly<Record<number, string>> = {
  400: 'Bad request',
  401: 'Not authenticated',
  403: 'Not allowed',
  404: 'Not found',
  405: 'Method not allowed',
  409: 'Conflict',
  412: 'Changed meanwhile',
  413: 'Too large',
  415: 'Not JSON',
  422: 'Not the same request',
  429: 'Too many requests',
  500: 'Internal error',
  503: 'Not available',
}

export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  readonly code: ErrorCode
  readonly detail: string
  readonly [more: string]: unknown
}

/** Errors of the connection, by the names that Node and Postgres have for them. */
const UNREACHABLE = /^(?:ECONN\w+|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|EHOSTUNREACH|ENETUNREACH|08\w{3}|57P0\d|53\w{3})$/

/** Any thrown thing as an error of ours; what is not known is INTERNAL and says nothing of itself. */
export function asRedriveError(error: unknown): RedriveError {
  if (isRedriveError(error)) return error
  const { code, message = '' } = error as { code?: unknown; message?: string }
  if (
    (typeof code === 'string' && UNREACHABLE.test(code)) ||
    /^(?:Connection terminated|timeout exceeded when)/.test(message)
  ) {
    return new RedriveError('DATABASE_UNREACHABLE', 'The database did not answer', { cause: error })
  }
  return new RedriveError('INTERNAL', 'Something failed that should not have', { cause: error })
}

/** What a person is told. Details are ours; causes and stacks stay inside. */
export function problemOf(error: RedriveError): Problem {
  const { code, message, details } = error
  const status = STATUS_OF[code]
  return {
    type: `urn:redrive:error:${code}`,
    title: TITLES[status] ?? 'Error',
    status,
    code,
    detail: message,
    ...Object.fromEntries(Object.entries(details).filter(([name]) => !RESERVED.has(name))),
  }
}

const RESERVED = new Set(['type', 'title', 'status', 'code', 'detail', 'stack', 'cause'])
