// The Redrives that are open in this process, so that `retryable` finds its ledger without being handed one.
import { RedriveError } from './domain/errors.js'
import type { InProcessRuntime } from './runtime/in-process.js'

/** What `retryable` needs of a Redrive. */
export interface Instance {
  readonly inProcess: InProcessRuntime
}

export const openInstances = new Set<Instance>()

/** The only open one; undefined when none is open. */
export function onlyInstance(): Instance | undefined {
  if (openInstances.size > 1) {
    const message = `${openInstances.size} Redrives are open; name one: retryable(fn, { redrive })`
    throw new RedriveError('AMBIGUOUS_INSTANCE', message)
  }
  return openInstances.values().next().value
}
