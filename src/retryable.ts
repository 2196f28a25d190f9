// The retry policy around any async function: called in place and awaited, with the same classification, decisions and
// dead letters as a job. Also a decorator for methods.
import { systemClock, systemRandom } from './domain/clock.js'
import { LIMITS } from './domain/limits.js'
import { onlyInstance } from './open-instances.js'
import type { Redrive } from './redrive.js'
import { type AnyJobDefinition, defineJob, type JobDefinition, type JobOptions } from './runtime/definition.js'
import { callInProcess, type InProcessRuntime } from './runtime/in-process.js'
import { toText } from './runtime/payload.js'
import { Policies } from './runtime/policies.js'
import type { Logger } from './telemetry/log.js'
import { jobLog } from './telemetry/log.js'

type AsyncFunction = (...args: never[]) => Promise<unknown>

export interface RetryableOptions
  extends Omit<JobOptions<unknown, unknown, unknown>, 'name' | 'handler' | 'schema' | 'concurrency'> {
  /** How its failures are grouped and its dead letters named. By default the function's own name. */
  readonly name?: string
  /** Whose ledger keeps the dead letters. By default the one Redrive that is open in this process. */
  readonly redrive?: Redrive
}

export type Retryable<Call extends AsyncFunction> = Call & {
  /** The same function as a job: give it to a worker, so that redriven dead letters of this function can run. */
  readonly job: JobDefinition<Parameters<Call>, Parameters<Call>, unknown>
}

type MethodDecorator = <Call extends AsyncFunction>(method: Call, context: ClassMethodDecoratorContext) => Call

export function retryable<Call extends AsyncFunction>(call: Call, options?: RetryableOptions): Retryable<Call>
export function retryable(options?: RetryableOptions): MethodDecorator
export function retryable<Call extends AsyncFunction>(
  callOrOptions?: Call | RetryableOptions,
  options: RetryableOptions = {},
): Retryable<Call> | MethodDecorator {
  if (typeof callOrOptions === 'function') return wrap(callOrOptions, options)
  return <Method extends AsyncFunction>(method: Method, context: ClassMethodDecoratorContext) =>
    decorate(method, { name: String(context.name), ...callOrOptions })
}

function wrap<Call extends AsyncFunction>(call: Call, options: RetryableOptions): Retryable<Call> {
  const job = definitionOf(options, call.name, args => call(...args))
  const retried = (...args: never[]) => invoke(job, args, options)
  return Object.assign(retried as Call, { job: job as unknown as Retryable<Call>['job'] })
}

function decorate<Call extends AsyncFunction>(method: Call, options: RetryableOptions): Call {
  const job = definitionOf(options, method.name, undefined)
  function retried(this: unknown, ...args: never[]) {
    const handler = (given: never[]) => method.apply(this, given)
    return invoke({ ...job, handler } as AnyJobDefinition, args, options)
  }
  return retried as Call
}

function definitionOf(
  { redrive: _, name, ...options }: RetryableOptions,
  ownName: string,
  handler: ((args: never[]) => Promise<unknown>) | undefined,
): JobDefinition<never[], never[], unknown> {
  return defineJob<never[], never[], unknown>({
    ...options,
    name: name ?? (ownName || 'anonymous'),
    ...(handler && { handler }),
  })
}

function invoke(definition: AnyJobDefinition, args: never[], { redrive }: RetryableOptions): Promise<unknown> {
  const runtime = (redrive ?? onlyInstance())?.inProcess ?? withoutLedger
  return callInProcess(runtime, {
    definition,
    payloadText: storable(args, definition.name),
    payload: () => args,
    recorded: 'failures',
  })
}

/** Arguments that cannot be stored must not keep the function from being called: the dead letter then says so. */
function storable(args: never[], name: string): string {
  try {
    return toText(args, {
      what: `The arguments of ${name}`,
      unserialisable: 'PAYLOAD_NOT_SERIALISABLE',
      tooLarge: 'PAYLOAD_TOO_LARGE',
      maxBytes: LIMITS.payloadBytes,
    })
  } catch (error) {
    return JSON.stringify({ notStored: (error as Error).message })
  }
}

const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }

/** With no Redrive open, calls are retried all the same; there is only nowhere to keep what dies. */
const withoutLedger: InProcessRuntime = {
  clock: systemClock,
  random: systemRandom,
  announce: () => {},
  policies: new Policies({}),
  logFor: jobLog(silent),
}
