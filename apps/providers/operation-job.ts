// The job `provider-operation`: finds the provider, checks the request, runs the operation. Who fails how:
//
//   no such provider    transient       it may be starting, here or on another worker
//   no such operation   permanent       its provider is here and does not know it
//   a bad request       validation
//   what the operation throws is judged by the worker's rules, its classifier, then by Redrive
import {
  type Classifier,
  custom,
  defineJob,
  type HandlerContext,
  type JobDefinition,
  type JobOptions,
  PermanentError,
  type Rule,
  TransientError,
  ValidationError,
} from 'redrive'
import { nameOf } from './names.js'
import type { Operation, OperationContext } from './provider.js'
import type { ProviderRegistry } from './registry.js'
import { type CheckedRequest, type ProviderRequest, providerRequest } from './request.js'
import { delayOf, LONGEST_DELAY_MS, type RetryDelays } from './retry-delays.js'

export const JOB = 'provider-operation'
export const QUEUE = 'provider.jobs'

export type ProviderJob = JobDefinition<ProviderRequest, CheckedRequest, unknown>

export interface ProviderJobOptions {
  readonly registry: ProviderRegistry
  readonly retryDelays: RetryDelays
  /** Undefined: what the settings say (MAX_RETRY_ATTEMPTS). */
  readonly attempts?: number | undefined
  readonly timeoutMs: number
  readonly transport?: JobOptions<unknown, unknown, unknown>['transport']
  readonly rules: readonly Rule[]
  readonly classify: Classifier
}

export function providerJob({ registry, retryDelays, attempts, ...options }: ProviderJobOptions): ProviderJob {
  const backoff = custom((_attempt, payload) => {
    const { provider, resourceType, operation } = payload as CheckedRequest
    const found = registry.find({ namespace: provider, resourceType }, operation)
    return (found.type === 'found' ? found.operation.retryDelayMs : undefined) ?? delayOf(retryDelays, operation)
  })
  return defineJob<ProviderRequest, CheckedRequest, unknown>({
    name: JOB,
    queue: QUEUE,
    schema: providerRequest,
    timeoutMs: options.timeoutMs,
    ...(options.transport !== undefined && { transport: options.transport }),
    retry: { backoff, maxMs: LONGEST_DELAY_MS, ...(attempts !== undefined && { attempts }) },
    rules: options.rules,
    classify: options.classify,
    handler: (payload, context) => perform(registry, payload, context),
  })
}

async function perform(registry: ProviderRegistry, payload: CheckedRequest, context: HandlerContext): Promise<unknown> {
  const { provider: namespace, resourceType, operation, request } = payload
  const name = nameOf({ namespace, resourceType })
  const found = registry.find({ namespace, resourceType }, operation)
  switch (found.type) {
    case 'no provider':
      throw new TransientError(`No provider found for ${name}`, { code: 'NO_PROVIDER' })
    case 'no operation': {
      const known = found.known.join(', ')
      throw new PermanentError(`Provider ${name} has no operation "${operation}"; it has ${known}`, {
        code: 'NO_OPERATION',
      })
    }
    case 'found': {
      const about = contextOf(context, name, operation)
      return found.operation.run(await checkedRequest(found.operation, request, about), about)
    }
  }
}

/** Passed on, not copied: most of it is worked out only when it is asked for. */
const contextOf = (context: HandlerContext, provider: string, operation: string): OperationContext => ({
  provider,
  operation,
  attempt: context.attempt,
  progress: context.progress,
  get job() {
    return context.job
  },
  get signal() {
    return context.signal
  },
  get deadline() {
    return context.deadline
  },
  get log() {
    return context.log
  },
})

async function checkedRequest(
  { schema }: Operation,
  request: CheckedRequest['request'],
  { provider, operation }: OperationContext,
): Promise<unknown> {
  if (!schema) return request
  const result = await schema['~standard'].validate(request)
  if (!result.issues) return result.value
  const issues = result.issues.slice(0, 10).map(({ path, message }) => `${pathOf(path)}${message}`)
  throw new ValidationError(`The request to ${operation} ${provider} is not valid: ${issues.join('; ')}`, {
    code: 'BAD_REQUEST',
  })
}

type Path = readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined

const pathOf = (path: Path): string =>
  path?.length ? `${path.map(part => String(typeof part === 'object' ? part.key : part)).join('.')}: ` : ''
