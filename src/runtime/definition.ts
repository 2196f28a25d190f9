// A job's definition: what the user writes with `defineJob`. Checked where it is written.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { invalid } from '../domain/errors.js'
import type { JobCounters, JobIdentity } from '../domain/job.js'
import type { Json } from '../domain/json.js'
import { checkName } from '../domain/names.js'
import type { PolicyOverride } from '../domain/policy.js'
import type { Classifier, Rule } from '../policy/classify.js'
import { parsePolicy } from '../policy/effective.js'
import { TRANSPORT_NAMES, type TransportName } from '../transport/carriers.js'
import { parseRateRule, type RateLimit, type RateRule } from './rate-rule.js'
import type { Verdict } from './verdict.js'

/** What a handler is given beside the payload. */
export interface HandlerContext {
  readonly job: JobIdentity & Omit<JobCounters, 'attempt'> & { readonly createdAt: Date }
  /** This attempt's number, from 1. */
  readonly attempt: number
  /** Aborted when the attempt must stop: timeout, lost lease, shutdown, cancellation. Its reason says which. */
  readonly signal: AbortSignal
  /** When the attempt will be timed out. */
  readonly deadline: Date
  readonly log: Log
  /** Saves how far the attempt has come, for people to see. Resolves to false when the job is not ours any more. */
  readonly progress: (progress: Json) => Promise<boolean>
}

export interface Log {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export type Handler<Payload, Result> = (
  payload: Payload,
  context: HandlerContext,
) => Promise<Result | Verdict> | Result | Verdict

/** As a user writes it. */
export interface JobOptions<Input, Payload, Result> {
  readonly name: string
  readonly queue?: string
  /** What carries its queue; Postgres, or what `openRedrive` says for the queue, where it is not said. */
  readonly transport?: TransportName | undefined
  /** Any Standard Schema validator (zod, valibot, arktype, …). */
  readonly schema?: StandardSchemaV1<Input, Payload>
  /** The dependency it calls; breakers and budgets are kept per service. */
  readonly service?: string
  readonly timeoutMs?: number
  /** At most so many at once on one worker. */
  readonly concurrency?: number
  readonly priority?: number
  /** At most so many starts in a time, over all workers, for each key. */
  readonly rateLimit?: RateLimit<Payload>
  readonly retry?: Omit<PolicyOverride, 'timeoutMs'>
  /** The kind of an error; undefined for Redrive's own judgement. */
  readonly classify?: Classifier
  readonly rules?: readonly Rule[]
  readonly handler?: Handler<Payload, Result>
}

export interface JobDefinition<Input = unknown, Payload = Input, Result = unknown> {
  readonly name: string
  readonly queue: string
  readonly transport: TransportName | undefined
  readonly schema: StandardSchemaV1<Input, Payload> | undefined
  readonly service: string | undefined
  readonly concurrency: number
  readonly priority: number | undefined
  readonly rateLimit: RateRule | undefined
  readonly policy: PolicyOverride
  readonly classify: Classifier | undefined
  readonly rules: readonly Rule[]
  readonly handler: Handler<Payload, Result> | undefined
}

// biome-ignore lint/suspicious/noExplicitAny: a list of definitions of different payloads has no other common type
export type AnyJobDefinition = JobDefinition<any, any, any>

export const DEFAULT_QUEUE = 'default'

export function defineJob<Input, Payload = Input, Result = unknown>(
  options: JobOptions<Input, Payload, Result>,
): JobDefinition<Input, Payload, Result> {
  const { name, queue = DEFAULT_QUEUE, service, timeoutMs, retry, concurrency = Number.POSITIVE_INFINITY } = options
  const { rateLimit } = options
  checkName('A job name', name)
  checkName(`The queue of job ${name}`, queue)
  if (service !== undefined) checkName(`The service of job ${name}`, service)
  if (rateLimit?.name !== undefined) checkName(`The name of the rate limit of job ${name}`, rateLimit.name)
  if (options.transport !== undefined && !TRANSPORT_NAMES.includes(options.transport)) {
    throw invalid(`The transport of job ${name}`, options.transport, TRANSPORT_NAMES.join(', '))
  }
  if (options.priority !== undefined) checkPriority(`The priority of job ${name}`, options.priority)
  if (!(concurrency === Number.POSITIVE_INFINITY || (Number.isInteger(concurrency) && concurrency >= 1))) {
    throw invalid(`The concurrency of job ${name}`, concurrency, 'a whole number of at least 1')
  }
  if (options.schema !== undefined && typeof options.schema['~standard']?.validate !== 'function') {
    throw invalid(`The schema of job ${name}`, typeof options.schema, 'a Standard Schema validator')
  }
  if (options.handler !== undefined && typeof options.handler !== 'function') {
    throw invalid(`The handler of job ${name}`, typeof options.handler, 'a function')
  }
  return {
    name,
    queue,
    transport: options.transport,
    schema: options.schema,
    service,
    concurrency,
    priority: options.priority,
    rateLimit: rateLimit && parseRateRule(rateLimit.name ?? name, rateLimit, `rateLimit of job ${name}`),
    policy: parsePolicy({ ...retry, timeoutMs }, `retry of job ${name}`),
    classify: options.classify,
    rules: options.rules ?? [],
    handler: options.handler,
  }
}

export function checkPriority(what: string, priority: unknown): void {
  if (!(Number.isInteger(priority) && Number(priority) >= 0 && Number(priority) <= 10)) {
    throw invalid(what, priority, 'a whole number from 0 to 10')
  }
}
