// How well it goes: a few small looks at the ledger, judged by the pure rules. A ledger that does not answer is an answer.
import { breakers } from '../ledger/breaker.js'
import type { Database } from '../ledger/database.js'
import { readLines } from '../ledger/health.js'
import { endedWithin } from '../ledger/pulse.js'
import { type Health, type HealthMeasures, judgeHealth, unreachable } from '../policy/health.js'
import type { HealthThresholds } from '../policy/health-thresholds.js'

export interface HealthReading {
  readonly thresholds: HealthThresholds
  readonly recoveryIntervalMs: number
  /** The time of this process, for when the database's is not to be had. */
  readonly now: () => number
}

export async function readHealth(
  db: Database,
  { thresholds, recoveryIntervalMs, now }: HealthReading,
): Promise<Health> {
  try {
    const [ended, lines, { breakers: known, readAt }] = await Promise.all([
      endedWithin(db, thresholds.windowMs),
      readLines(db),
      breakers(db),
    ])
    const notClosed = known.flatMap(({ service, state, since, reason, shadow }): HealthMeasures['breakers'] =>
      // One in shadow mode holds nothing, unless a person isolated its service.
      state === 'closed' || (shadow && state !== 'isolated')
        ? []
        : [{ service, state, sinceMs: readAt - since, reason }],
    )
    return judgeHealth(
      { ...lines, since: ended.since, ended: ended.queues, breakers: notClosed, recoveryIntervalMs },
      thresholds,
    )
  } catch (error) {
    return unreachable(error, now())
  }
}
