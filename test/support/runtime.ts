// The moving parts on a fresh ledger, put together by hand: for stories that need to reach inside, where a Redrive of
// the library would keep its doors closed. Workers started here are stopped when their test is done.
import { onTestFinished } from 'vitest'
import { systemClock, systemRandom } from '../../src/domain/clock.js'
import type { EventName, Events } from '../../src/domain/event.js'
import type { JobId } from '../../src/domain/ids.js'
import { type Attempt, attemptsOf } from '../../src/ledger/attempt.js'
import { findJob, type JobView } from '../../src/ledger/job.js'
import { Services } from '../../src/runtime/breaker-sync.js'
import type { AnyJobDefinition } from '../../src/runtime/definition.js'
import { Policies } from '../../src/runtime/policies.js'
import { type EnqueueOptions, newJob } from '../../src/runtime/producer.js'
import { promoter } from '../../src/runtime/promoter.js'
import type { Runtime } from '../../src/runtime/runtime.js'
import { Worker, type WorkerOptions } from '../../src/runtime/worker.js'
import { createEmitter, type Emitter } from '../../src/telemetry/emitter.js'
import { jobLog, type Logger } from '../../src/telemetry/log.js'
import { postgresTransport } from '../../src/transport/transports/postgres.js'
import { type DatabaseKind, type FreshDatabase, freshDatabase } from './databases.js'

export const silent: Logger = { debug() {}, info() {}, warn() {}, error() {} }

export interface Moving extends FreshDatabase {
  readonly runtime: Runtime
  readonly on: Emitter['on']
  next<Name extends EventName>(name: Name, matches?: (event: Events[Name]) => boolean): Promise<Events[Name]>
  work(definitions: readonly AnyJobDefinition[], options?: Partial<WorkerOptions>): Worker
  enqueue(definition: AnyJobDefinition, payload?: unknown, options?: EnqueueOptions): Promise<JobId>
  /** The job as a person sees it. */
  see(id: JobId): Promise<JobView & { readonly attempts: readonly Attempt[] }>
}

/** `change` gets the parts as they would be, and may put others in their place. */
export async function openRuntime(
  kind: DatabaseKind = 'memory',
  change: (runtime: Runtime) => Partial<Runtime> = () => ({}),
): Promise<Moving> {
  const fresh = await freshDatabase(kind)
  return { ...fresh, ...move(fresh, change) }
}

/** Another process on the same ledger, as far as one process can be two: its own transport, policies and events. */
export function move(
  { db }: Pick<FreshDatabase, 'db'>,
  change: (runtime: Runtime) => Partial<Runtime> = () => ({}),
): Omit<Moving, keyof FreshDatabase> {
  const { announce, on } = createEmitter()
  const needed = { db, transport: postgresTransport(db), clock: systemClock, random: systemRandom, announce }
  const usual: Runtime = {
    ...needed,
    services: new Services(needed),
    policies: new Policies({}),
    logFor: jobLog(silent),
    onDeferred: () => {},
  }
  const changed = change(usual)
  const runtime: Runtime = { ...usual, services: new Services({ ...usual, ...changed }), ...changed }
  return {
    runtime,
    on,
    next: (name, matches = () => true) =>
      new Promise(resolve => {
        const stop = on(name, event => {
          if (!matches(event)) return
          stop()
          resolve(event)
        })
      }),
    work(definitions, options = {}) {
      const settings = { name: 'w1', host: 'here', pid: 1, version: null, concurrency: 10, leaseMs: 15_000, pollMs: 50 }
      const worker = new Worker(runtime, definitions, { ...settings, ...options })
      const due = promoter(runtime)
      due.start()
      onTestFinished(async () => {
        await worker.stop({ graceMs: 0 })
        await due.stop()
        await runtime.services.stop()
        await runtime.transport.close()
      })
      return worker
    },
    async enqueue(definition, payload = {}, options = {}) {
      const [enqueued] = await runtime.transport.publish([await newJob(runtime.clock, definition, payload, options)])
      return enqueued?.id as JobId
    },
    async see(id) {
      const found = await findJob(db, id)
      if (!found) throw new Error(`there is no job ${id}`)
      return { ...found, attempts: await attemptsOf(db, id) }
    },
  }
}
