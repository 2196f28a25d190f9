// When a breaker opens, looks again and closes, and how many jobs it lets through meanwhile. Pure: what the fleet saw
// goes in, the next move with its reason comes out; where it is kept and who tells whom is not known here.
//
//   closed ──too many failures──▶ open ──its time is over──▶ half_open ──enough probes succeed──▶ closed, released slowly
//                                  ▲                             │
//                                  └──────too many fail, longer──┘          isolated: only a person moves it
import type { Breaker, BreakerSettings, BreakerState, ServiceSight } from '../domain/breaker.js'
import type { Random } from '../domain/clock.js'
import type { Failure, Kind } from '../domain/failure.js'
import type { Outcome } from '../domain/outcome.js'
import { shortTime } from './say.js'

/** What an attempt says of the service's health. */
export type Health = 'good' | 'bad' | 'nothing'

export function healthOf(outcome: Outcome, service: string, kinds: readonly Kind[]): Health {
  if (outcome.type === 'succeeded') return 'good'
  if (outcome.type !== 'failed' && outcome.type !== 'timed_out') return 'nothing'
  return speaksOf(outcome.failure, service, kinds) ? 'bad' : 'nothing'
}

/**
 * A failure that names another service says nothing of this one, and one that nobody could read says nothing at all: it
 * may be a mistake in the handler, whose jobs must die and be seen, not be held for a service that is well.
 */
export const speaksOf = (failure: Failure, service: string, kinds: readonly Kind[]): boolean =>
  !failure.unknown && kinds.includes(failure.kind) && (failure.service === undefined || failure.service === service)

/** What the whole fleet saw. */
export interface Evidence {
  readonly succeeded: number
  readonly failed: number
  /** Failures in a row, with no success anywhere since the first of them. */
  readonly run: number
}

export const NO_EVIDENCE: Evidence = { succeeded: 0, failed: 0, run: 0 }

/** Sums up what each process saw. Failures in a row from before the breaker's last move say nothing any more. */
export function evidenceOf(seen: readonly ServiceSight[], since: number): Evidence {
  let succeeded = 0
  let failed = 0
  let run = 0
  let from = since
  for (const sight of seen) {
    succeeded += sight.succeeded
    failed += sight.failed
    if (sight.lastSuccessAt !== null && sight.lastSuccessAt > from) from = sight.lastSuccessAt
  }
  for (const sight of seen) if (sight.runSince !== null && sight.runSince >= from) run += sight.run
  return { succeeded, failed, run }
}

export interface Move {
  readonly state: BreakerState
  readonly openMs?: number
  readonly openings: number
  readonly reason: string
}

/** A run must be so large a share of the window: five of a thousand a second are chance, not an outage. */
const RUN_SHARE = 0.01

/** Undefined: it stays as it is. */
export function step(
  breaker: Breaker,
  evidence: Evidence,
  settings: BreakerSettings,
  now: number,
  random: Random,
): Move | undefined {
  if (!settings.enabled) {
    const off = breaker.state === 'open' || breaker.state === 'half_open'
    return off ? { state: 'closed', openings: 0, reason: 'it was switched off' } : undefined
  }
  switch (breaker.state) {
    case 'isolated':
      return undefined
    case 'closed': {
      const why = trips(evidence, settings)
      if (why === undefined) return undefined
      const proven = now - breaker.since >= settings.releaseMs + settings.windowMs
      return opened(proven ? 1 : breaker.openings + 1, why, settings, random)
    }
    case 'open':
      if (now < (breaker.openUntil ?? 0)) return undefined
      return {
        state: 'half_open',
        openings: breaker.openings,
        reason: `its open time is over: ${jobs(settings.probes)} may try`,
      }
    case 'half_open':
      return afterProbes(breaker, evidence, settings, now, random)
  }
}

function trips({ succeeded, failed, run }: Evidence, settings: BreakerSettings): string | undefined {
  const volume = succeeded + failed
  const inARow = Math.max(settings.consecutiveFailures, Math.ceil(volume * RUN_SHARE))
  if (run >= inARow) return `${run} failures in a row, without a success anywhere`
  if (volume < settings.minimumVolume || failed / volume < settings.failureRate) return undefined
  const share = Math.round((failed / volume) * 100)
  return `${failed} of the last ${volume} attempts failed (${share}%)`
}

function afterProbes(
  breaker: Breaker,
  evidence: Evidence,
  settings: BreakerSettings,
  now: number,
  random: Random,
): Move | undefined {
  const { openings, permits } = breaker
  const { probes, probesToClose, probeTimeoutMs } = settings
  // A shadow holds nothing: what ran since then is its probe.
  const succeeded = settings.shadow ? evidence.succeeded : breaker.probesSucceeded
  const failed = settings.shadow ? evidence.failed : breaker.probesFailed
  if (succeeded >= probesToClose) {
    return { state: 'closed', openings, reason: `${succeeded} of ${succeeded + failed} jobs that tried succeeded` }
  }
  if (failed > probes - probesToClose) {
    return opened(openings + 1, `${failed} of ${succeeded + failed} jobs that tried failed`, settings, random)
  }
  const unheard = permits - breaker.probesSucceeded - breaker.probesFailed
  if (unheard > 0 && now - breaker.permitsSince >= probeTimeoutMs) {
    const reason = `nothing was heard of ${jobs(unheard)} for ${shortTime(probeTimeoutMs)}: as many others may try`
    return { state: 'half_open', openings, reason }
  }
  return undefined
}

function opened(openings: number, why: string, settings: BreakerSettings, random: Random): Move {
  const grown = Math.min(settings.openMs * settings.openFactor ** (openings - 1), settings.openMaxMs)
  const openMs = Math.round(grown * (1 + settings.jitter * (2 * random() - 1)))
  return { state: 'open', openMs, openings, reason: `${why}: open for ${shortTime(openMs)}` }
}

/** How many jobs may have been let through by now, since the last move; Infinity: as many as there are. */
export function allowance(breaker: Breaker, settings: BreakerSettings, now: number): number {
  // A person's word holds whatever the settings say.
  if (breaker.state !== 'isolated' && (settings.shadow || !settings.enabled)) return Number.POSITIVE_INFINITY
  switch (breaker.state) {
    case 'open':
    case 'isolated':
      return 0
    case 'half_open':
      return settings.probes
    case 'closed':
      return breaker.openings === 0 ? Number.POSITIVE_INFINITY : released(settings, now - breaker.permitsSince)
  }
}

/** The sum, up to now, of a rate that doubles again and again. */
function released(settings: BreakerSettings, sinceMs: number): number {
  const { releasePerSecond, releaseDoublingMs, releaseMs } = settings
  if (sinceMs >= releaseMs) return Number.POSITIVE_INFINITY
  const doublings = Math.max(0, sinceMs) / releaseDoublingMs
  const total = (releasePerSecond / 1_000) * (releaseDoublingMs / Math.LN2) * (2 ** doublings - 1)
  return Math.min(Math.floor(1 + total), 2 ** 31 - 1)
}

/** How a job's end is judged by the state of its service. */
export interface BreakerView {
  readonly service: string
  readonly state: BreakerState
  /** Failures of these kinds speak of the service's health. */
  readonly kinds: readonly Kind[]
  /** Such failures are the service's, not the job's: it is not closed, or not for long enough to be trusted. */
  readonly holding: boolean
  /** Other jobs fail as well and none succeeds: it may open any moment. */
  readonly suspected: boolean
  /** When it is looked at again. */
  readonly lookInMs: number
}

/** While a person holds it, nobody knows when: its jobs are looked at now and then. */
const ISOLATED_LOOK_MS = 60_000
const SOON_MS = 1_000

export function viewOf(breaker: Breaker, settings: BreakerSettings, now: number, suspected: boolean): BreakerView {
  const { service, state } = breaker
  const free = allowance(breaker, settings, now) === Number.POSITIVE_INFINITY
  const on = settings.enabled && !settings.shadow
  return {
    service,
    state,
    kinds: settings.kinds,
    holding: !free,
    suspected: free && on && suspected,
    lookInMs: Math.max(SOON_MS, free ? SOON_MS : lookInMs(breaker, settings, now)),
  }
}

function lookInMs(breaker: Breaker, settings: BreakerSettings, now: number): number {
  switch (breaker.state) {
    case 'isolated':
      return ISOLATED_LOOK_MS
    case 'open':
      return (breaker.openUntil ?? now) - now
    case 'half_open':
      return SOON_MS
    case 'closed':
      return breaker.permitsSince + settings.releaseMs - now
  }
}

const jobs = (count: number): string => (count === 1 ? 'one job' : `${count} jobs`)
