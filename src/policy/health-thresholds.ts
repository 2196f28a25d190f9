// From when on a sign counts as degraded or unhealthy: the defaults, and the check of what a user says instead.
import { invalid } from '../domain/errors.js'
import { LIMITS } from '../domain/limits.js'

/** From `degraded` on it is degraded, from `unhealthy` on unhealthy. */
export interface Bounds {
  readonly degraded: number
  readonly unhealthy: number
}

export interface HealthThresholds {
  /** Over how long attempts and deaths are counted. */
  readonly windowMs: number
  /** Fewer attempts say nothing about a rate. */
  readonly minimumAttempts: number
  /** Share of attempts that failed. A single queue over it makes the whole at most degraded. */
  readonly failureRate: Bounds
  /** How long the oldest job has been waiting in a queue that is worked on. */
  readonly backlogAgeMs: Bounds
  /** Share of ended jobs that died. */
  readonly deadShare: Bounds
  /** Fewer deaths say nothing. */
  readonly minimumDead: number
  /** How long a breaker has not been closed. */
  readonly breakerOpenMs: Bounds
  /** How long jobs have been waiting in a queue without a worker, or a worker without a lease held jobs. */
  readonly silentMs: Bounds
  /** How many intervals ago recovery last ran. */
  readonly recoveryIntervals: Bounds
}

export const DEFAULT_HEALTH_THRESHOLDS: HealthThresholds = {
  windowMs: 900_000,
  minimumAttempts: 20,
  failureRate: { degraded: 0.1, unhealthy: 0.5 },
  backlogAgeMs: { degraded: 60_000, unhealthy: 600_000 },
  deadShare: { degraded: 0.01, unhealthy: 0.1 },
  minimumDead: 5,
  breakerOpenMs: { degraded: 0, unhealthy: 600_000 },
  silentMs: { degraded: 30_000, unhealthy: 300_000 },
  recoveryIntervals: { degraded: 2, unhealthy: 6 },
}

/** As a user writes them: only what differs. */
export type HealthOptions = {
  readonly [Key in keyof HealthThresholds]?: HealthThresholds[Key] extends Bounds
    ? Partial<Bounds>
    : HealthThresholds[Key]
}

const RANGES: { readonly [Key in keyof HealthThresholds]: readonly [least: number, most: number] } = {
  windowMs: [60_000, 7_200_000],
  minimumAttempts: [1, 1_000_000],
  failureRate: [0, 1],
  backlogAgeMs: [0, LIMITS.delayMs],
  deadShare: [0, 1],
  minimumDead: [1, 1_000_000],
  breakerOpenMs: [0, LIMITS.delayMs],
  silentMs: [0, LIMITS.delayMs],
  recoveryIntervals: [1, 10_000],
}

/** Fills in the defaults; a threshold that is not one is refused. */
export function parseHealthOptions(options: HealthOptions): HealthThresholds {
  const known = Object.keys(RANGES)
  const unknown = Object.keys(options).find(key => !known.includes(key))
  if (unknown !== undefined) throw invalid('A key of health', unknown, `one of ${known.join(', ')}`)
  const thresholds = Object.entries(RANGES).map(([key, [least, most]]) => {
    const name = key as keyof HealthThresholds
    const usual = DEFAULT_HEALTH_THRESHOLDS[name]
    const given = options[name]
    if (typeof usual === 'number') return [name, within(`health.${name}`, given ?? usual, least, most)]
    if (given !== undefined && (typeof given !== 'object' || given === null)) {
      throw invalid(`health.${name}`, given, 'an object with degraded and unhealthy')
    }
    const degraded = within(`health.${name}.degraded`, given?.degraded ?? usual.degraded, least, most)
    const unhealthy = within(`health.${name}.unhealthy`, given?.unhealthy ?? usual.unhealthy, least, most)
    if (unhealthy < degraded) throw invalid(`health.${name}.unhealthy`, unhealthy, `at least degraded (${degraded})`)
    return [name, { degraded, unhealthy }]
  })
  return Object.fromEntries(thresholds) as HealthThresholds
}

function within(what: string, value: unknown, least: number, most: number): number {
  if (!(typeof value === 'number' && value >= least && value <= most)) {
    throw invalid(what, value, `a number from ${least} to ${most}`)
  }
  return value
}
