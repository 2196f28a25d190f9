// Enqueuing: checked before anything is written, so that bad input leaves nothing behind.
import type { Clock } from '../domain/clock.js'
import { invalid } from '../domain/errors.js'
import { newJobId } from '../domain/ids.js'
import { type Enqueued, type NewJob, PRIORITY } from '../domain/job.js'
import { LIMITS } from '../domain/limits.js'
import type { ForeignClient } from '../ledger/database.js'
import { type AnyJobDefinition, checkPriority } from './definition.js'
import { encodePayload } from './payload.js'

export interface EnqueueOptions {
  /** Run after so long. */
  readonly delayMs?: number
  /** Run at this time; beats `delayMs`. */
  readonly runAt?: Date
  /** 0–10, higher first. */
  readonly priority?: number
  readonly tenant?: string
  readonly user?: string
  readonly project?: string
  /** One live job per queue and key; a second enqueue returns the first one's id. */
  readonly uniqueKey?: string
  /** A client of yours with a transaction open: the job exists if, and only if, you commit. */
  readonly tx?: ForeignClient
}

export interface BatchItem<Input> {
  readonly payload: Input
  readonly options?: Omit<EnqueueOptions, 'tx'>
}

export type { Enqueued }

/** Checked in all but its schema, which may have to be awaited. */
export function newJob(clock: Clock, definition: AnyJobDefinition, payload: unknown, options: EnqueueOptions): NewJob {
  const { delayMs, runAt, tenant, user, project, uniqueKey } = options
  const priority = options.priority ?? definition.priority ?? PRIORITY.default
  checkPriority('priority', priority)
  if (delayMs !== undefined && !(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= LIMITS.delayMs)) {
    throw invalid('delayMs', delayMs, `milliseconds from 0 to ${LIMITS.delayMs}`)
  }
  if (runAt !== undefined && !(runAt instanceof Date && runAt.getTime() <= clock.now() + LIMITS.delayMs)) {
    throw invalid('runAt', runAt, 'a valid Date, at most ten years ahead')
  }
  checkKey('tenant', tenant)
  checkKey('user', user)
  checkKey('project', project)
  checkKey('uniqueKey', uniqueKey)
  const { queue, name, service, policy } = definition
  const job: { -readonly [Key in keyof NewJob]: NewJob[Key] } = {
    id: newJobId(clock),
    queue,
    name,
    priority,
    payloadText: encodePayload(definition, payload),
  }
  if (delayMs !== undefined) job.delayMs = delayMs
  if (runAt !== undefined) job.runAt = new Date(Math.max(0, runAt.getTime())).toISOString()
  if (tenant !== undefined) job.tenant = tenant
  if (user !== undefined) job.user = user
  if (project !== undefined) job.project = project
  if (uniqueKey !== undefined) job.uniqueKey = uniqueKey
  if (service !== undefined) job.service = service
  if (policy.attempts !== undefined) job.maxAttempts = policy.attempts
  return job
}

function checkKey(what: string, key: unknown): void {
  if (key === undefined) return
  if (
    typeof key !== 'string' ||
    key.length < 1 ||
    key.length > LIMITS.keyChars ||
    key.includes('\0') ||
    !key.isWellFormed()
  ) {
    throw invalid(what, key, `text of 1 to ${LIMITS.keyChars} characters`)
  }
}
