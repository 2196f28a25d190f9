// How well it goes, from what the ledger shows: each sign is judged by itself, with its reason in words, and the worst
// one is the answer. Pure: the same measures and thresholds give the same judgement.
import type { Bounds, HealthThresholds } from './health-thresholds.js'
import { count, counted, duration, percent } from './say.js'

export const HEALTH_STATUSES = ['healthy', 'degraded', 'unhealthy'] as const
export type HealthStatus = (typeof HEALTH_STATUSES)[number]

export const HEALTH_CHECKS = [
  'success_rate',
  'backlog_age',
  'dead_letters',
  'breakers',
  'workers',
  'recovery',
  'ledger',
] as const
export type HealthCheckName = (typeof HEALTH_CHECKS)[number]

export interface HealthCheck {
  readonly name: HealthCheckName
  readonly status: HealthStatus
  /** Above 0.8: healthy. Above 0.4: degraded. */
  readonly score: number
  readonly reason: string
}

export interface Health {
  readonly status: HealthStatus
  /** That of the worst check, 0 to 1. */
  readonly score: number
  /** What is wrong, the worst first; or that nothing is. */
  readonly reason: string
  readonly checks: readonly HealthCheck[]
  /** The database's time. */
  readonly at: Date
  /** From when on attempts and deaths were counted. */
  readonly since: Date
  /** Of the attempts that ended since then; null: none did. */
  readonly successRate: number | null
}

interface Lane {
  readonly queue: string
  readonly name: string
  readonly waitedMs: number
  readonly paused: boolean
  readonly worked: boolean
  readonly known: boolean
  readonly service: string | null
}

/** What is judged. Ages are milliseconds. */
export interface HealthMeasures {
  readonly now: number
  readonly since: number
  readonly ended: readonly {
    readonly queue: string
    readonly completed: number
    readonly failed: number
    readonly dead: number
  }[]
  readonly lanes: readonly Lane[]
  readonly silentSessions: readonly { readonly worker: string; readonly silentMs: number }[]
  readonly overdueMs: number
  readonly openDeadLetters: number
  /** Those that are not closed. */
  readonly breakers: readonly {
    readonly service: string
    readonly state: 'open' | 'half_open' | 'isolated'
    readonly sinceMs: number
    readonly reason: string
  }[]
  readonly recovery?: { readonly startedMsAgo: number; readonly error?: string }
  readonly recoveryIntervalMs: number
  readonly alive: boolean
  readonly empty: boolean
}

export function judgeHealth(measures: HealthMeasures, thresholds: HealthThresholds): Health {
  const checks = [
    successRate(measures, thresholds),
    backlogAge(measures, thresholds),
    deadLetters(measures, thresholds),
    breakers(measures, thresholds),
    workers(measures, thresholds),
    recovery(measures, thresholds),
  ]
  const total = sum(measures.ended, ({ completed, failed }) => completed + failed)
  return summed(checks, {
    at: measures.now,
    since: measures.since,
    successRate: total === 0 ? null : sum(measures.ended, ({ completed }) => completed) / total,
    fine: measures.empty ? 'There is nothing yet: no job was ever seen.' : 'All is well.',
  })
}

/** Nothing can be told of a ledger that does not answer, except that. */
export const unreachable = (error: unknown, now: number): Health =>
  summed([{ name: 'ledger', status: 'unhealthy', score: 0, reason: `The ledger does not answer: ${text(error)}.` }], {
    at: now,
    since: now,
    successRate: null,
    fine: '',
  })

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error)).replace(/\.$/, '')

function summed(
  checks: readonly HealthCheck[],
  told: { at: number; since: number; successRate: number | null; fine: string },
): Health {
  const ailing = checks.filter(({ status }) => status !== 'healthy').sort((a, b) => a.score - b.score)
  return {
    status: ailing[0]?.status ?? 'healthy',
    score: Math.min(1, ...checks.map(({ score }) => score)),
    reason: ailing.length === 0 ? told.fine : ailing.map(({ reason }) => reason).join(' '),
    checks,
    at: new Date(told.at),
    since: new Date(told.since),
    successRate: told.successRate,
  }
}

function successRate({ ended, now, since }: HealthMeasures, thresholds: HealthThresholds): HealthCheck {
  const { failureRate, minimumAttempts } = thresholds
  const rates = ended
    .map(({ queue, completed, failed }) => ({ queue, failed, attempts: completed + failed }))
    .filter(({ attempts }) => attempts > 0)
  const attempts = sum(rates, rate => rate.attempts)
  const failed = sum(rates, rate => rate.failed)
  const lately = `in the last ${duration(now - since)}`
  if (attempts === 0) return healthy('success_rate', `No attempt ended ${lately}.`)
  const told = `${count(failed)} of ${counted(attempts, 'attempt')} failed ${lately} (${percent(failed / attempts)})`
  const all = attempts < minimumAttempts ? NOTHING : judged(failed / attempts, failureRate)
  const worst = rates
    .filter(rate => rate.attempts >= minimumAttempts)
    .sort((a, b) => b.failed / b.attempts - a.failed / a.attempts)[0]
  const one = worst ? atMostDegraded(judged(worst.failed / worst.attempts, failureRate)) : NOTHING
  const where = worst && worst.failed > 0 && rates.length > 1
  const inQueue = where ? `, worst in queue ${worst.queue}: ${count(worst.failed)} of ${count(worst.attempts)}` : ''
  const few = attempts < minimumAttempts && failed > 0 ? `, too few to judge by` : ''
  return { name: 'success_rate', ...(one.score < all.score ? one : all), reason: `${told}${inQueue}${few}.` }
}

function backlogAge(measures: HealthMeasures, { backlogAgeMs }: HealthThresholds): HealthCheck {
  const { lanes, overdueMs } = measures
  const paused = new Set(lanes.filter(lane => lane.paused).map(({ queue }) => queue)).size
  const aside = paused > 0 ? ` Jobs of ${counted(paused, 'paused queue')} are not counted.` : ''
  // Jobs of a service that is held wait on purpose: its breaker is a sign of its own.
  const held = new Set(measures.breakers.map(({ service }) => service))
  const oldest = longest(lanes.filter(lane => !(lane.paused || silent(lane) || held.has(lane.service ?? ''))))
  if (overdueMs > (oldest?.waitedMs ?? 0)) {
    const told = `A delayed job or retry was due ${duration(overdueMs)} ago and nobody has put it in line`
    return { name: 'backlog_age', ...judged(overdueMs, backlogAgeMs), reason: `${told}.${aside}` }
  }
  if (!oldest) return healthy('backlog_age', `No job waits for a worker.${aside}`)
  const told = `The oldest waiting job, ${oldest.name} in queue ${oldest.queue}, has waited for ${duration(oldest.waitedMs)}`
  return { name: 'backlog_age', ...judged(oldest.waitedMs, backlogAgeMs), reason: `${told}.${aside}` }
}

function deadLetters(measures: HealthMeasures, { deadShare, minimumDead }: HealthThresholds): HealthCheck {
  const { ended, openDeadLetters, now, since } = measures
  const dead = sum(ended, queue => queue.dead)
  const all = dead + sum(ended, ({ completed }) => completed)
  const open = `${counted(openDeadLetters, 'dead letter')} ${openDeadLetters === 1 ? 'is' : 'are'} open`
  if (dead === 0) return healthy('dead_letters', `No job died in the last ${duration(now - since)}; ${open}.`)
  const most = [...ended].sort((a, b) => b.dead - a.dead)[0]
  const where = most && ended.length > 1 ? `, most in queue ${most.queue} (${count(most.dead)})` : ''
  const told = `${counted(dead, 'job')} died in the last ${duration(now - since)}, ${percent(dead / all)} of those that ended`
  const verdict = dead < minimumDead ? NOTHING : judged(dead / all, deadShare)
  return { name: 'dead_letters', ...verdict, reason: `${told}${where}; ${open}.` }
}

const STATES = { open: 'open', half_open: 'trying again', isolated: 'isolated by a person' } as const

function breakers(measures: HealthMeasures, { breakerOpenMs }: HealthThresholds): HealthCheck {
  const longestFirst = [...measures.breakers].sort((a, b) => b.sinceMs - a.sinceMs)
  const [first, ...others] = longestFirst
  if (!first) return healthy('breakers', 'No breaker is open.')
  const more =
    others.length > 0 ? ` So ${others.length === 1 ? 'is' : 'are'} ${names(others.map(o => o.service))}.` : ''
  const { service, state, sinceMs, reason } = first
  const told = `The breaker of ${service} has been ${STATES[state]} for ${duration(sinceMs)}: ${reason.replace(/\.$/, '')}`
  return { name: 'breakers', ...judged(sinceMs, breakerOpenMs), reason: `${told}.${more}` }
}

function workers({ lanes, silentSessions }: HealthMeasures, { silentMs }: HealthThresholds): HealthCheck {
  const lane = longest(lanes.filter(lane => !lane.paused && silent(lane)))
  const session = [...silentSessions].sort((a, b) => b.silentMs - a.silentMs)[0]
  if (session && session.silentMs > (lane?.waitedMs ?? 0)) {
    const told = `Worker ${session.worker} lost its lease ${duration(session.silentMs)} ago and nobody has taken over its jobs`
    return { name: 'workers', ...judged(session.silentMs, silentMs), reason: `${told}.` }
  }
  if (!lane) return healthy('workers', 'Every queue with waiting jobs has a worker.')
  const queues = [...new Set(lanes.filter(other => !other.paused && silent(other)).map(({ queue }) => queue))]
  const told = lane.worked
    ? `No worker knows job ${lane.name} of queue ${lane.queue}`
    : `No worker takes jobs from queue ${lane.queue}`
  const more = queues.length > 1 ? `, nor from ${names(queues.filter(queue => queue !== lane.queue))}` : ''
  const reason = `${told}${lane.worked ? '' : more}; its oldest job has waited for ${duration(lane.waitedMs)}.`
  return { name: 'workers', ...judged(lane.waitedMs, silentMs), reason }
}

function recovery(measures: HealthMeasures, { recoveryIntervals }: HealthThresholds): HealthCheck {
  const { recovery: last, recoveryIntervalMs, alive } = measures
  if (!alive) return healthy('recovery', 'Nothing runs or will run, so nothing has to be recovered.')
  // A worker runs it within a fraction of the interval: nobody has to answer for the first one.
  if (!last) return healthy('recovery', 'Recovery has not run yet.')
  const ago = `Recovery last ran ${duration(last.startedMsAgo)} ago`
  const verdict = judged(last.startedMsAgo / recoveryIntervalMs, recoveryIntervals)
  if (last.error === undefined) return { name: 'recovery', ...verdict, reason: `${ago}.` }
  const failed = verdict.status === 'healthy' ? atDegraded : verdict
  return { name: 'recovery', ...failed, reason: `${ago} and failed: ${last.error.replace(/\.$/, '')}.` }
}

type Verdict = Pick<HealthCheck, 'status' | 'score'>

const NOTHING: Verdict = { status: 'healthy', score: 1 }
const atDegraded: Verdict = { status: 'degraded', score: 0.8 }
const healthy = (name: HealthCheckName, reason: string): HealthCheck => ({ name, ...NOTHING, reason })

/** From 1 down to 0.8 at the first bound, to 0.4 at the second, and then towards 0. */
export function judged(value: number, { degraded, unhealthy }: Bounds): Verdict {
  if (value < degraded) return { status: 'healthy', score: 1 - 0.2 * (value / degraded) }
  if (value < unhealthy) return { status: 'degraded', score: 0.8 - 0.4 * ((value - degraded) / (unhealthy - degraded)) }
  return { status: 'unhealthy', score: value === 0 ? 0.4 : 0.4 * (unhealthy / value) }
}

const atMostDegraded = (verdict: Verdict): Verdict =>
  verdict.status === 'unhealthy' ? { status: 'degraded', score: 0.41 } : verdict

const silent = ({ worked, known }: Lane): boolean => !worked || !known
const longest = (lanes: readonly Lane[]): Lane | undefined => [...lanes].sort((a, b) => b.waitedMs - a.waitedMs)[0]
const sum = <Item>(items: readonly Item[], of: (item: Item) => number): number =>
  items.reduce((total, item) => total + of(item), 0)

function names(all: readonly string[]): string {
  const told = all.slice(0, 3)
  return all.length > told.length ? `${told.join(', ')} and ${all.length - told.length} more` : told.join(' and ')
}
