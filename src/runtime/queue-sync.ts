// Follows what the ledger says of queues: policies changed at run time, and pauses. A claim never takes from a paused
// queue; a worker also gives back what it claimed ahead and has not started.
import { queueSettings } from '../ledger/queue.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'

const EVERY_MS = 2_000

export interface QueueSyncOptions {
  readonly queues: readonly string[]
  readonly onPaused: (queue: string) => void
  readonly onError: (error: unknown) => void
}

export function queueSync(runtime: Runtime, { queues, onPaused, onError }: QueueSyncOptions): Loop {
  const step = async () => {
    for (const queue of await followQueues(runtime, queues)) onPaused(queue)
    return EVERY_MS
  }
  return loop({ ...runtime, step, onError })
}

/** Takes over the policies of the named queues, or of all that have one; returns which are paused. */
export async function followQueues({ db, policies, announce }: Runtime, queues?: readonly string[]): Promise<string[]> {
  const paused: string[] = []
  const found = await queueSettings(db, queues)
  if (!queues) policies.keepOnly(new Set(found.map(({ name }) => name)))
  for (const settings of found) {
    try {
      policies.setQueue(settings.name, settings.policy)
    } catch (error) {
      announce('error', () => ({ where: `reading the policy of queue ${settings.name}`, error }))
    }
    if (settings.paused) paused.push(settings.name)
  }
  return paused
}
