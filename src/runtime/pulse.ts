// Writes down, once a minute, how much has ended so far: one small statement, by whichever process comes first.
import { takePulse } from '../ledger/pulse.js'
import { type Loop, loop } from './loop.js'
import type { Runtime } from './runtime.js'

/** A little into the next minute, so that clocks that differ by a moment do not look twice in the same one. */
const LATE_MS = 250

export function pulse(runtime: Runtime): Loop {
  const { db, announce } = runtime
  return loop({
    ...runtime,
    step: async () => (await takePulse(db)) + LATE_MS,
    onError: error => announce('error', () => ({ where: 'taking the pulse', error })),
  })
}
