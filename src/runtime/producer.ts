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

export async function newJob(
  clock: Clock,
  definition: AnyJobDefinition,
  payload: unknown,
  options: EnqueueOptions,
): Promise<NewJob> {
  const { delayMs, runAt, tenant, user, project, uniqueKey } = options
  const priority = options.priority ?? definition.priority ?? PRIORITY.default
  checkPriority('priority', priority)
  if (delayMs !== undefined && !(typeof delayMs === 'number' && delayMs >= 0 && delayMs <= LIMITS.delayMs)) {
    throw invalid('delayMs', delayMs, `milliseconds from 0 to ${LIMITS.delayMs}`)
  }
  if (runAt !== undefined && !(runAt instanceof Date && runAt.getTime() <= clock.now() + LIMITS.delayMs)) {
    throw invalid('runAt', runAt, 'a valid Date, at most ten years ahead')
  }
  for (const [what, key] of Object.entries({ tenant, user, project, uniqueKey })) checkKey(what, key)
  const { attempts } = definition.policy
  return {
    id: newJobId(clock),
    queue: definition.queue,
    name: definition.name,
    priority,
    payloadText: await encodePayload(definition, payload),
    ...(delayMs !== undefined && { delayMs }),
    ...(runAt !== undefined && { runAt: new Date(Math.max(0, runAt.getTime())).toISOString() }),
    ...(tenant !== undefined && { tenant }),
    ...(user !== undefined && { user }),
    ...(project !== undefined && { project }),
    ...(uniqueKey !== undefined && { uniqueKey }),
    ...(definition.service !== undefined && { service: definition.service }),
    ...(attempts !== undefined && { maxAttempts: attempts }),
  }
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
