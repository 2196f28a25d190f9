// What holds for a service: the defaults, then what the code says, then what a person set at run time. Checked where it
// is written, setting by setting.
import type { BreakerSettings, BudgetSettings, ServiceSettings } from '../domain/breaker.js'
import { invalid } from '../domain/errors.js'
import { isKind, KINDS } from '../domain/failure.js'

/**
 * Kinds that speak of the service's health. Not `rate_limited`: a service that says so is alive, and says when to come
 * back. Not `lost`: the worker died. The rest is about one request.
 */
const HEALTH_KINDS = ['transient', 'network', 'system'] as const

export const DEFAULT_BREAKER: BreakerSettings = {
  enabled: true,
  shadow: false,
  consecutiveFailures: 5,
  failureRate: 0.5,
  windowMs: 30_000,
  minimumVolume: 20,
  kinds: HEALTH_KINDS,
  openMs: 5_000,
  openFactor: 2,
  openMaxMs: 60_000,
  jitter: 0.2,
  probes: 3,
  probesToClose: 2,
  probeTimeoutMs: 60_000,
  releasePerSecond: 10,
  releaseDoublingMs: 2_000,
  releaseMs: 30_000,
}

export const DEFAULT_BUDGET: BudgetSettings = {
  enabled: true,
  share: 0.2,
  windowMs: 30_000,
  floorPerSecond: 10,
}

/** Everything that holds for one service. */
export interface EffectiveService {
  readonly breaker: BreakerSettings
  readonly budget: BudgetSettings
}

/** Later settings win. */
export function effectiveService(...settings: readonly (ServiceSettings | undefined)[]): EffectiveService {
  const breaker: BreakerSettings = Object.assign({}, DEFAULT_BREAKER, ...settings.map(set => set?.breaker))
  return {
    // As many as there are probes, however few a person left.
    breaker: { ...breaker, probesToClose: Math.min(breaker.probesToClose, breaker.probes) },
    budget: Object.assign({}, DEFAULT_BUDGET, ...settings.map(set => set?.budget)),
  }
}

type Check = (what: string, value: unknown) => unknown

const number =
  (least: number, most: number, whole = true): Check =>
  (what, value) => {
    const fits = typeof value === 'number' && value >= least && value <= most && (!whole || Number.isInteger(value))
    if (!fits) throw invalid(what, value, `a ${whole ? 'whole ' : ''}number from ${least} to ${most}`)
    return value
  }

const yesNo: Check = (what, value) => {
  if (typeof value !== 'boolean') throw invalid(what, value, 'true or false')
  return value
}

const kinds: Check = (what, value) => {
  if (!Array.isArray(value) || value.length === 0 || !value.every(isKind)) {
    throw invalid(what, value, `a list of some of ${KINDS.join(', ')}`)
  }
  return [...value]
}

const DAY_MS = 24 * 3_600_000

const BREAKER: Readonly<Record<keyof BreakerSettings, Check>> = {
  enabled: yesNo,
  shadow: yesNo,
  consecutiveFailures: number(1, 1_000_000),
  failureRate: number(0.01, 1, false),
  windowMs: number(1_000, 600_000),
  minimumVolume: number(1, 1_000_000),
  kinds,
  openMs: number(100, DAY_MS),
  openFactor: number(1, 10, false),
  openMaxMs: number(100, DAY_MS),
  jitter: number(0, 0.5, false),
  probes: number(1, 1_000),
  probesToClose: number(1, 1_000),
  probeTimeoutMs: number(100, DAY_MS),
  releasePerSecond: number(0.1, 1_000_000, false),
  releaseDoublingMs: number(100, 600_000),
  releaseMs: number(0, 3_600_000),
}

const BUDGET: Readonly<Record<keyof BudgetSettings, Check>> = {
  enabled: yesNo,
  share: number(0, 10, false),
  windowMs: number(1_000, 600_000),
  floorPerSecond: number(0.01, 1_000_000, false),
}

const SERVICE: Readonly<Record<keyof ServiceSettings, Check>> = {
  breaker: (what, value) => checked(what, value, BREAKER),
  budget: (what, value) => checked(what, value, BUDGET),
}

function checked(where: string, value: unknown, checks: Readonly<Record<string, Check>>): Record<string, unknown> {
  const known = Object.keys(checks).join(', ')
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw invalid(where, value, `an object with any of ${known}`)
  }
  const settings: Record<string, unknown> = {}
  for (const [key, setting] of Object.entries(value)) {
    if (setting === undefined) continue
    const check = Object.hasOwn(checks, key) ? checks[key] : undefined
    if (!check) throw invalid(`A key of ${where}`, key, `one of ${known}`)
    settings[key] = check(`${where}.${key}`, setting)
  }
  return settings
}

/** Checks settings as a user wrote them or as they were stored; `where` names them in the error. */
export function parseService(value: unknown, where: string): ServiceSettings {
  const settings = checked(where, value, SERVICE) as ServiceSettings
  const { probes, probesToClose } = { ...DEFAULT_BREAKER, ...settings.breaker }
  if (settings.breaker?.probesToClose !== undefined && probesToClose > probes) {
    throw invalid(`${where}.breaker.probesToClose`, probesToClose, `at most the number of probes, ${probes}`)
  }
  return settings
}
