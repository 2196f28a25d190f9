// What a message says of its job, and back: headers for the facts, the body for the payload. Anyone with a client can
// write one (docs/reference/message-format.md): only the name is required. What cannot be read is said in words and becomes
// a dead letter; it never throws.
import { createHash } from 'node:crypto'
import type { Clock } from '../domain/clock.js'
import { isJobId, type JobId, newJobId } from '../domain/ids.js'
import { type NewJob, PRIORITY } from '../domain/job.js'
import { cap, LIMITS } from '../domain/limits.js'
import { isName } from '../domain/names.js'
import type { Delivery, Message } from './broker.js'

/** A job as its message tells it. */
export interface CarriedJob extends Omit<NewJob, 'delayMs' | 'runAt' | 'uniqueKey'> {
  /** By the clock of whoever published it; undefined if it does not say. */
  readonly createdAt?: number
}

export type Reading =
  | { readonly type: 'job'; readonly job: CarriedJob }
  /** What could be read of it, and in words what is wrong. */
  | { readonly type: 'malformed'; readonly job: CarriedJob; readonly problem: string }

export function toMessage(job: NewJob, createdAt: number): Message {
  const headers: Record<string, string> = {
    'redrive-id': job.id,
    'redrive-name': job.name,
    'redrive-created-at': String(Math.floor(createdAt)),
  }
  if (job.tenant !== undefined) headers['redrive-tenant'] = job.tenant
  if (job.user !== undefined) headers['redrive-user'] = job.user
  if (job.project !== undefined) headers['redrive-project'] = job.project
  if (job.service !== undefined) headers['redrive-service'] = job.service
  if (job.maxAttempts !== undefined) headers['redrive-max-attempts'] = String(job.maxAttempts)
  if (job.trace !== undefined) headers.traceparent = job.trace
  return { queue: job.queue, priority: job.priority, headers, body: job.payloadText }
}

/** The name of a job that has none. */
export const NAMELESS = '(no name)'

export function read(delivery: Delivery, clock: Clock): Reading {
  const { queue, headers, body, priority } = delivery
  const problems: string[] = []
  const name = headers['redrive-name']
  if (name === undefined) problems.push('it has no redrive-name')
  else if (!isName(name)) problems.push(`its name is not 1 to ${LIMITS.nameChars} characters of plain text`)
  const rank = isPriority(priority)
  if (!rank) problems.push(`its priority is ${priority}, not a whole number from 0 to 10`)
  // A UTF-16 unit takes at most three bytes: short texts need no counting.
  const tooLarge = body.length * 3 > LIMITS.payloadBytes && Buffer.byteLength(body) > LIMITS.payloadBytes
  if (tooLarge) problems.push(`its body has more than ${LIMITS.payloadBytes} bytes`)
  const job: { -readonly [Key in keyof CarriedJob]: CarriedJob[Key] } = {
    id: idOf(delivery, clock, problems),
    queue,
    name: isName(name) ? name : NAMELESS,
    priority: rank ? priority : PRIORITY.default,
    payloadText: body,
  }
  const tenant = key(headers, 'redrive-tenant', problems)
  const user = key(headers, 'redrive-user', problems)
  const project = key(headers, 'redrive-project', problems)
  if (tenant !== undefined) job.tenant = tenant
  if (user !== undefined) job.user = user
  if (project !== undefined) job.project = project
  const service = headers['redrive-service']
  if (isName(service)) job.service = service
  else if (service !== undefined) problems.push('its redrive-service is not plain text')
  // By its common name: other producers write it as well. One that cannot be read is no reason for a job to die.
  const trace = headers.traceparent
  if (trace !== undefined && TRACE.test(trace)) job.trace = trace
  const attempts = number(headers['redrive-max-attempts'])
  if (attempts !== undefined && Number.isInteger(attempts) && attempts >= 1 && attempts <= 1_000) {
    job.maxAttempts = attempts
  } else if (attempts !== undefined) problems.push('its redrive-max-attempts is not a whole number from 1 to 1000')
  const createdAt = number(headers['redrive-created-at'])
  if (createdAt !== undefined && Number.isFinite(createdAt) && createdAt >= 0 && createdAt <= LATEST) {
    job.createdAt = createdAt
  } else if (createdAt !== undefined) problems.push('its redrive-created-at is no time in milliseconds')
  return problems.length === 0 ? { type: 'job', job } : { type: 'malformed', job, problem: problems.join('; ') }
}

const LATEST = 8.64e15
/** As W3C trace context has it. */
const TRACE = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/

const isPriority = (priority: number): boolean =>
  Number.isInteger(priority) && priority >= PRIORITY.lowest && priority <= PRIORITY.highest

const number = (text: string | undefined): number | undefined => (text === undefined ? undefined : Number(text || 'x'))

function key(headers: Delivery['headers'], name: string, problems: string[]): string | undefined {
  const text = headers[name]
  if (text === undefined) return undefined
  if (text.length <= LIMITS.keyChars && !text.includes('\0') && text.isWellFormed()) return text
  problems.push(`its ${name} is not text of at most ${LIMITS.keyChars} characters`)
  return undefined
}

/**
 * Its own id, or one made from the id that the broker or the producer gave the message: that is the same when it is
 * delivered again. Without either, a new one each time.
 */
function idOf({ queue, headers }: Delivery, clock: Clock, problems: string[]): JobId {
  const own = headers['redrive-id']
  if (own !== undefined && isJobId(own)) return own.toLowerCase() as JobId
  if (own !== undefined) problems.push('its redrive-id is not a UUID')
  const given = own ?? headers['message-id']
  if (given === undefined) return newJobId(clock)
  return isJobId(given) ? (given.toLowerCase() as JobId) : derivedId(`${queue}\n${given}`)
}

/** A UUID of version 8: made from a text, by a rule of our own. */
export function derivedId(text: string): JobId {
  const hex = createHash('sha256').update(text).digest('hex')
  const variant = ((Number.parseInt(hex.slice(16, 18), 16) & 0x3f) | 0x80).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(18, 20)}-${hex.slice(20, 32)}` as JobId
}

/** Deeper than this, Postgres may not be able to read it. */
const DEEPEST = 2_000
const RAW_CHARS = 65_536

/** The payload as the ledger can keep it: as it came, or, if it is no JSON, as text in an object of its own. */
export function storable(body: string): { readonly payloadText: string; readonly isJson: boolean } {
  const isJson = Buffer.byteLength(body) <= LIMITS.payloadBytes && isShallowJson(body)
  return { isJson, payloadText: isJson ? body : JSON.stringify({ raw: cap(body, RAW_CHARS) }) }
}

function isShallowJson(body: string): boolean {
  try {
    JSON.parse(body)
  } catch {
    return false
  }
  let depth = 0
  let inText = false
  for (let at = 0; at < body.length; at += 1) {
    const char = body[at]
    if (inText) {
      if (char === '\\') at += 1
      else if (char === '"') inText = false
    } else if (char === '"') inText = true
    else if (char === '[' || char === '{') {
      depth += 1
      if (depth > DEEPEST) return false
    } else if (char === ']' || char === '}') depth -= 1
  }
  return true
}
