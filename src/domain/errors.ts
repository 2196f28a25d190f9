// Every error Redrive itself raises, in one registry: a stable code, what it means, what to do next.
// docs/reference/errors.md lists the same codes; a test compares the two.
import type { Kind } from './failure.js'

export const ERROR_CODES = {
  SETTING_INVALID: 'A setting or option has a value that is not allowed. The message names it and what it may be.',
  PAYLOAD_INVALID: "The payload does not fit the job's schema. Nothing was enqueued.",
  PAYLOAD_TOO_LARGE: 'The payload is over the size limit. Store the data elsewhere and pass its key.',
  PAYLOAD_NOT_SERIALISABLE: 'The payload cannot be written as JSON. Nothing was enqueued.',
  RESULT_NOT_SERIALISABLE:
    'A handler returned something that cannot be written as JSON. Return plain data, or nothing.',
  RESULT_TOO_LARGE: "A handler's result is over the size limit. Store the data elsewhere and return its key.",
  DATABASE_UNREACHABLE:
    'The database did not answer, or refused the connection. Check address, credentials and server.',
  BROKER_UNAVAILABLE:
    'The broker that carries this queue did not take the job in time. `details.taken` says whether it may have it all the same.',
  DATABASE_TOO_OLD: 'The Postgres server is older than the oldest supported version (14).',
  SCHEMA_NEWER: 'The database was migrated by a newer Redrive. Upgrade this process; nothing was changed.',
  SCHEMA_PENDING: 'The schema is missing or older than this Redrive, and it was told not to migrate it.',
  SCHEMA_CHANGED: 'A migration that was applied differs from the one in this version. Restore the released files.',
  LEDGER_LOCKED:
    'Another process has the embedded database open. One process at a time; use a Postgres server for more.',
  STATEMENT_TIMEOUT: 'A statement took longer than its limit and was given up.',
  NOT_FOUND: 'There is no such job, dead letter or queue.',
  NOT_PENDING: 'The dead letter is not open: it is being redriven, or was resolved. Nothing was changed.',
  NOT_CANCELLABLE: 'The job has already ended. Nothing was changed.',
  UNIQUE_KEY_TAKEN: 'Another live job of the same queue holds this unique key. The dead letter stays as it is.',
  UNIQUE_KEY_CONTENDED: 'The unique key was taken and freed again and again while enqueuing. Try once more.',
  VERSION_CONFLICT: 'It was changed by somebody else since it was read. Nothing was changed.',
  FILTER_REQUIRED: 'An action on many things needs a filter, or `all: true` said in full.',
  HANDLER_MISSING: 'The job has no handler here: it can be enqueued, not run.',
  ALREADY_CLOSED: 'This Redrive was closed.',
  AMBIGUOUS_INSTANCE: 'Several Redrives are open in this process. Name one: `retryable(fn, { redrive })`.',
  LEASE_LOST: 'This worker could not renew its lease, or another one took the job over. The attempt was given up.',
  TIMED_OUT: 'The attempt took longer than its time limit.',
  SHUTTING_DOWN: 'The worker is stopping and the grace time is over. The job goes back without spending an attempt.',
  SERVICE_HELD:
    'The service is held: its breaker is open, or a person isolated it. The function was not called, or not again.',
  CANCELLED: 'The job was cancelled, by its handler or by whoever asked for it. There is no result.',
  CANCEL_REQUESTED: 'A person asked for this running job to be cancelled.',
  REQUEST_INVALID: 'A request over HTTP has a field that is not allowed. `issues` names each and what it may be.',
  UNAUTHENTICATED: 'The request has no bearer token, or one that nobody knows.',
  FORBIDDEN: 'The token lacks the scope that this call needs.',
  THROTTLED: 'Too many requests with a wrong token came from this address. Wait as long as Retry-After says.',
  TOO_MANY_STREAMS: 'As many clients as may listen to the events of this process do so already. Try again later.',
  METHOD_NOT_ALLOWED: 'This path does not take this method. `Allow` says which ones it takes.',
  BODY_TOO_LARGE: 'The body of the request is over the size limit.',
  MEDIA_TYPE_UNSUPPORTED: 'The body of the request is not JSON. Send `content-type: application/json`.',
  IDEMPOTENCY_KEY_REUSED: 'This Idempotency-Key was used for another request. Nothing was changed.',
  REQUEST_UNDER_WAY: 'A request with this Idempotency-Key is being carried out. Ask again in a moment.',
  TOKEN_EXISTS: 'There is a token of this name, or there are as many tokens as there may be. Nothing was changed.',
  TAKES_TOO_LONG: 'The request took longer than its limit. What it began may still come to an end.',
  INTERNAL: 'Something failed that should not have. The log of the server has it, by the id of the request.',
} as const

export type ErrorCode = keyof typeof ERROR_CODES

/** A program may have loaded this package twice; an error of the other copy is one of ours all the same. */
const OURS = Symbol.for('redrive.error')

export class RedriveError extends Error {
  readonly code: ErrorCode
  readonly details: Readonly<Record<string, unknown>>

  constructor(code: ErrorCode, message: string, options: { cause?: unknown; details?: Record<string, unknown> } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'RedriveError'
    this.code = code
    this.details = options.details ?? {}
  }

  get [OURS](): true {
    return true
  }
}

export const isRedriveError = (error: unknown, code?: ErrorCode): error is RedriveError =>
  error instanceof Error && OURS in error && (code === undefined || (error as RedriveError).code === code)

/** One line for a value that is not allowed: what it is, what it was, what it may be. */
export function invalid(what: string, was: unknown, allowed: string): RedriveError {
  const shown = typeof was === 'string' ? JSON.stringify(was.slice(0, 100)) : String(was)
  return new RedriveError('SETTING_INVALID', `${what} is ${shown}; it must be ${allowed}`)
}

export interface KindErrorOptions {
  readonly cause?: unknown
  readonly code?: string
  readonly retryAfterMs?: number
  readonly service?: string
}

/** Thrown by a handler that knows the kind of its failure. Use one of the classes below. */
export abstract class KindError extends Error {
  abstract readonly kind: Kind
  readonly code: string | undefined
  readonly retryAfterMs: number | undefined
  readonly service: string | undefined

  constructor(message: string, options: KindErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = options.code
    this.retryAfterMs = options.retryAfterMs
    this.service = options.service
  }
}

export class TransientError extends KindError {
  readonly kind = 'transient'
}
export class RateLimitedError extends KindError {
  readonly kind = 'rate_limited'
}
export class NetworkError extends KindError {
  readonly kind = 'network'
}
export class SystemError extends KindError {
  readonly kind = 'system'
}
export class PermanentError extends KindError {
  readonly kind = 'permanent'
}
export class ValidationError extends KindError {
  readonly kind = 'validation'
}
export class AuthenticationError extends KindError {
  readonly kind = 'authentication'
}
