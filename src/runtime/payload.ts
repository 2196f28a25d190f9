// Payloads on their way in and out: validated by the job's schema when enqueued and again before the handler, bounded,
// and stored as the user gave them (before the schema's transformations, which then happen once, for the handler).
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type ErrorCode, RedriveError } from '../domain/errors.js'
import type { Json } from '../domain/json.js'
import { LIMITS } from '../domain/limits.js'
import type { AnyJobDefinition } from './definition.js'

/** Writes a payload for the ledger. */
export function encodePayload(job: AnyJobDefinition, payload: unknown): string {
  return toText(payload, PAYLOAD, job)
}

const PAYLOAD: Writing = {
  what: 'The payload of job',
  unserialisable: 'PAYLOAD_NOT_SERIALISABLE',
  tooLarge: 'PAYLOAD_TOO_LARGE',
  maxBytes: LIMITS.payloadBytes,
}

/** Checks a payload that is about to be stored, as it will be read: a Date in it is text by then. */
export async function checkPayload(job: AnyJobDefinition, text: string): Promise<void> {
  if (job.schema) await validate(job, JSON.parse(text))
}

/** Reads a payload for the handler; a promise where there is a schema. */
export function decodePayload(job: AnyJobDefinition, text: string): unknown {
  let payload: unknown
  try {
    payload = JSON.parse(text)
  } catch (cause) {
    throw new RedriveError('PAYLOAD_INVALID', `The payload of job ${job.name} is not JSON`, { cause })
  }
  return job.schema ? validate(job, payload) : payload
}

/** The result as it will be read again, and how long it is as text. */
export function encodeResult(job: AnyJobDefinition, result: unknown): { result: Json; size: number } {
  const text = toText(result ?? null, RESULT, job)
  return { result: JSON.parse(text) as Json, size: text.length }
}

const RESULT: Writing = {
  what: 'The result of job',
  unserialisable: 'RESULT_NOT_SERIALISABLE',
  tooLarge: 'RESULT_TOO_LARGE',
  maxBytes: LIMITS.resultBytes,
}

interface Writing {
  readonly what: string
  readonly unserialisable: ErrorCode
  readonly tooLarge: ErrorCode
  readonly maxBytes: number
}

/** `job`: whose it is, where `what` does not say it. */
export function toText(value: unknown, writing: Writing, job?: { readonly name: string }): string {
  const { unserialisable, tooLarge, maxBytes } = writing
  const what = () => (job ? `${writing.what} ${job.name}` : writing.what)
  let text: string | undefined
  try {
    text = JSON.stringify(value === undefined ? null : value)
  } catch (cause) {
    throw new RedriveError(unserialisable, `${what()} cannot be written as JSON: ${(cause as Error).message}`, {
      cause,
    })
  }
  if (text === undefined)
    throw new RedriveError(unserialisable, `${what()} cannot be written as JSON: it is a ${typeof value}`)
  // A UTF-16 unit takes at most three bytes: short texts need no counting.
  if (text.length * 3 > maxBytes) {
    const bytes = Buffer.byteLength(text)
    if (bytes > maxBytes) {
      throw new RedriveError(tooLarge, `${what()} has ${bytes} bytes; at most ${maxBytes} are allowed`)
    }
  }
  return text
}

async function validate(job: AnyJobDefinition, payload: unknown): Promise<unknown> {
  const schema = job.schema as StandardSchemaV1
  const result = await schema['~standard'].validate(payload)
  if (!result.issues) return result.value
  const issues = result.issues
    .slice(0, 10)
    .map(({ path, message }) => ({ in: 'payload', field: fieldOf(path), message }))
  const told = issues.map(({ field, message }) => (field === '' ? message : `${field}: ${message}`))
  const message = `The payload of job ${job.name} does not fit its schema: ${told.join('; ')}`
  throw new RedriveError('PAYLOAD_INVALID', message, { details: { issues } })
}

/** Empty: the payload as a whole. */
const fieldOf = (path: StandardSchemaV1.Issue['path'] = []): string =>
  path.map(part => String(typeof part === 'object' ? part.key : part)).join('.')
