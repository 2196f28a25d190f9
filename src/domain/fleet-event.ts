// What happened in the whole fleet, as whoever watches is told it: read from the ledger, so it does not matter which
// process did it. Names are those of the library's events where there is one.
import type { BreakerState } from './breaker.js'
import type { Kind } from './failure.js'

export interface FleetEvents {
  /** A job became a dead letter. */
  'job.dead': {
    readonly id: string
    readonly queue: string
    readonly name: string
    readonly kind: Kind
    readonly group: string
    readonly service?: string
    readonly attempts: number
    readonly reason: string
    readonly message: string
  }
  'group.new': {
    readonly id: string
    readonly title: string
    readonly kind: Kind
    readonly service?: string
    readonly version?: string
  }
  'group.regressed': {
    readonly id: string
    readonly title: string
    readonly kind: Kind
    readonly service?: string
    readonly version?: string
  }
  'breaker.changed': {
    readonly service: string
    readonly to: BreakerState
    readonly reason: string
    readonly by: string
    readonly shadow: boolean
    readonly openUntil?: string
  }
  'queue.paused': { readonly queue: string; readonly by: string; readonly reason?: string }
  'queue.resumed': { readonly queue: string; readonly by: string; readonly reason?: string }
  'triage.escalated': { readonly id: string; readonly by: string; readonly message: string }
  'recovery.finished': {
    readonly id: string
    readonly cause: string
    readonly worker: string
    readonly status: 'succeeded' | 'failed'
    readonly rescued: number
    readonly promoted: number
    readonly buried: number
    readonly triaged: number
    readonly cleaned: number
    readonly expired: number
    readonly error?: string
  }
  'worker.started': { readonly worker: string; readonly host: string; readonly queues: readonly string[] }
  'worker.ended': { readonly worker: string; readonly host: string; readonly how: 'stopped' | 'lapsed' }
  /** Somebody changed something else: who, what, and what it was about. */
  'desk.changed': {
    readonly action: string
    readonly targetType: string
    readonly target: string
    readonly by: string
    readonly reason?: string
  }
  /** There was more of this than is told one by one: look at the lists. */
  missed: { readonly of: string }
}

export type FleetEventName = keyof FleetEvents

export type FleetEvent = {
  readonly [Name in FleetEventName]: {
    readonly name: Name
    /** RFC 3339, by the database's clock. */
    readonly at: string
    readonly about: FleetEvents[Name]
  }
}[FleetEventName]

/** The same key is the same event, whoever reads it and however often. */
export type KeyedEvent = FleetEvent & { readonly key: string }

export interface FleetNews {
  /** The database's time of the look, milliseconds: where the next one begins. */
  readonly now: number
  /** Oldest first. What happened shortly before the time that was asked for is told again. */
  readonly events: readonly KeyedEvent[]
}
