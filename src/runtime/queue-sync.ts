// Follows what the ledger says of queues and job names: policies changed at run time, and pauses. A claim never takes
// from a paused queue; a worker also gives back what it claimed ahead and has not started.
import type { Lane } from '../ledger/claim.js'
import { newestPolicies, POLICY_SCOPES, type PolicyTarget } from '../ledger/policy.js'
import { queueSettings } from '../ledger/queue.js'
import { loop } from './loop.js'
import type { Runtime } from './runtime.js'

const EVERY_MS = 2_000

export interface QueueSyncOptions {
  readonly lanes: readonly Lane[]
  readonly onPaused: (queue: string) => void
  /** Said of every queue, each time. */
  readonly onSettings?: (queue: string, paused: boolean) => void
  readonly onError: (error: unknown) => void
}

export interface QueueSync {
  /** Resolves when it has looked for the first time, and looks again from time to time. */
  start(): Promise<void>
  stop(): Promise<void>
}

export function queueSync(runtime: Runtime, { lanes, onPaused, onSettings, onError }: QueueSyncOptions): QueueSync {
  const queues = [...new Set(lanes.map(({ queue }) => queue))]
  const jobs = [...new Set(lanes.map(({ name }) => name))]
  const targets = [
    ...queues.map(target => ({ scope: 'queue' as const, target })),
    ...jobs.map(target => ({ scope: 'job' as const, target })),
  ]
  const step = async () => {
    await followPolicies(runtime, targets)
    for (const { name, paused } of await queueSettings(runtime.db, queues)) {
      if (paused) onPaused(name)
      onSettings?.(name, paused)
    }
    return EVERY_MS
  }
  const following = loop({ ...runtime, step, onError })
  return {
    start: async () => following.start(await step()),
    stop: () => following.stop(),
  }
}

/** Takes over the policies of these queues and job names, or of all that have one. */
export async function followPolicies(
  { db, policies, announce }: Runtime,
  targets?: readonly PolicyTarget[],
): Promise<void> {
  const found = await newestPolicies(db, targets)
  for (const scope of targets ? [] : POLICY_SCOPES) {
    policies.keepOnly(scope, new Set(found.filter(policy => policy.scope === scope).map(({ target }) => target)))
  }
  for (const { scope, target, policy } of found) {
    try {
      policies.set(scope, target, policy)
    } catch (error) {
      announce('error', () => ({ where: `reading the policy of ${scope} ${target}`, error }))
    }
  }
}
