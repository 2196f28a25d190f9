// Whether a call that is awaited in place may go to its service now. Nobody can be made to wait for a breaker: a call to
// a service that is held fails at once, without being made.
import { RedriveError } from '../domain/errors.js'
import type { Announce } from '../domain/event.js'
import type { Lease } from '../domain/ids.js'
import type { Services } from './breaker-sync.js'
import type { ServiceState } from './service-state.js'

interface Known {
  /** Undefined: there is no ledger. */
  readonly services?: Services
  readonly announce: Announce
}

/** Follows the call's service; undefined if it names none, or if there is no ledger that could know. */
export async function serviceOfCall(
  { services, announce }: Known,
  service: string | undefined,
): Promise<ServiceState | undefined> {
  if (!services || service === undefined) return undefined
  await services.follow([service]).catch(error => {
    // A ledger that is away says nothing of the service.
    announce('error', () => ({ where: `reading the breaker of ${service}`, error }))
  })
  return services.of(service)
}

/** Throws if the service is held. `lease` names the attempt, for the breaker that lets it through. */
export async function admit(
  { services, announce }: Known,
  service: ServiceState,
  lease: Lease,
  cause?: unknown,
): Promise<void> {
  if (!services || service.free) return
  const permits = await services.take(service, 1).catch(error => {
    announce('error', () => ({ where: `asking the breaker of ${service.name}`, error }))
    return 1
  })
  if (permits < 1) throw serviceHeld(service, cause)
  service.letThrough([lease])
}

export function serviceHeld({ name, breaker, now }: ServiceState, cause?: unknown): RedriveError {
  const { state, reason, openUntil } = breaker
  const retryAfterMs = openUntil === null ? undefined : Math.max(0, Math.round(openUntil - now))
  const message = `${name} is ${STANDING[state]} (${reason}); it was not called`
  const details = { service: name, state, ...(retryAfterMs !== undefined && { retryAfterMs }) }
  const error = new RedriveError('SERVICE_HELD', message, { details, ...(cause !== undefined && { cause }) })
  // Heard by whoever classifies it: a job that calls this one need not come back earlier.
  return Object.assign(error, retryAfterMs !== undefined && { retryAfterMs })
}

const STANDING = {
  open: 'held: its breaker is open',
  half_open: 'held: others are trying it out',
  closed: 'coming back slowly',
  isolated: 'isolated',
} as const
