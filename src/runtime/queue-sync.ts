// Follows what the ledger says of queues and job names: policies changed at run time, and pauses. A claim never takes
// from a paused queue; a worker also gives back what it claimed ahead and has not started.
import type { Lane } from '../ledger/claim.js'
import { laneSettings } from '../ledger/lane-settings.js'
import { newestPolicies, POLICY_SCOPES, type PolicyVersion } from '../ledger/policy.js'
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
    const found = await laneSettings(runtime.db, targets)
    takeOver(runtime, found)
    for (const { scope, target, paused } of found) {
      if (scope !== 'queue') continue
      if (paused) onPaused(target)
      onSettings?.(target, paused)
    }
    return EVERY_MS
  }
  const following = loop({ ...runtime, step, onError })
  return {
    start: async () => following.start(await step()),
    stop: () => following.stop(),
  }
}

/** Takes over the policies of all queues and job names that have one. */
export async function followPolicies(runtime: Runtime): Promise<void> {
  const found = await newestPolicies(runtime.db)
  for (const scope of POLICY_SCOPES) {
    const targets = found.filter(policy => policy.scope === scope).map(({ target }) => target)
    runtime.policies.keepOnly(scope, new Set(targets))
  }
  takeOver(runtime, found)
}

type Found = Pick<PolicyVersion, 'scope' | 'target' | 'policy'>

function takeOver({ policies, announce }: Runtime, found: readonly Found[]): void {
  for (const { scope, target, policy } of found) {
    try {
      policies.set(scope, target, policy)
    } catch (error) {
      announce('error', () => ({ where: `reading the policy of ${scope} ${target}`, error }))
    }
  }
}
