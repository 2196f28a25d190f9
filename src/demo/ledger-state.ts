// What the ledger holds: read through the operator's functions, as any program could, and said in words.
import type { DeadLetterCount, QueueStatistics, RecoveryStatistics, Redrive } from '../index.js'

export interface LedgerState {
  readonly queues: readonly QueueStatistics[]
  readonly deadLetters: readonly DeadLetterCount[]
  readonly recovery: RecoveryStatistics
}

export async function readLedger(redrive: Redrive): Promise<LedgerState> {
  const [queues, deadLetters, recovery] = await Promise.all([
    redrive.operator.queues.statistics(),
    redrive.operator.deadLetters.statistics(),
    redrive.recoveryStatus(),
  ])
  return { queues, deadLetters, recovery }
}

export const LIVE = ['waiting', 'active', 'retrying', 'scheduled', 'held'] as const
export const ENDED = ['completed', 'cancelled', 'dead'] as const
type Counted = (typeof LIVE)[number] | (typeof ENDED)[number]

export const countOf = ({ queues }: LedgerState, state: Counted): number =>
  queues.reduce((sum, queue) => sum + queue[state], 0)

export const liveJobs = (state: LedgerState): number => LIVE.reduce((sum, name) => sum + countOf(state, name), 0)

const open = ({ deadLetters }: LedgerState): DeadLetterCount[] =>
  deadLetters.filter(({ status }) => status === 'pending')

export const openDeadLetters = (state: LedgerState): number => open(state).reduce((sum, { count }) => sum + count, 0)

/** "3 jobs will still run (2 waiting, 1 retrying); 40 completed; 2 open dead letters (1 transient, 1 validation)" */
export function inWords(state: LedgerState): string {
  const live = liveJobs(state)
  const willRun = `${count(live, 'job')} will still run${list(LIVE.map(name => [name, countOf(state, name)]))}`
  const ended = `${countOf(state, 'completed')} completed`
  const cancelled = countOf(state, 'cancelled') > 0 ? `, ${countOf(state, 'cancelled')} cancelled` : ''
  const byKind = new Map<string, number>()
  for (const { kind, count } of open(state)) byKind.set(kind, (byKind.get(kind) ?? 0) + count)
  const dead = `${count(openDeadLetters(state), 'open dead letter')}${list([...byKind])}`
  return `${willRun}; ${ended}${cancelled}; ${dead}`
}

export const isEmpty = (state: LedgerState): boolean =>
  liveJobs(state) + ENDED.reduce((sum, name) => sum + countOf(state, name), 0) === 0

/** "the last recovery run, 3 min ago, succeeded: rescued 2, promoted 0, buried 0" */
export function lastRecovery({ recovery }: LedgerState, now: number): string | undefined {
  const last = recovery.recent.find(({ status }) => status !== 'running')
  if (!last) return undefined
  const did = `rescued ${last.rescued}, promoted ${last.promoted}, buried ${last.buried}`
  const how = last.error === undefined ? last.status : `${last.status} (${last.error})`
  return `the last recovery run, ${ago(now - last.startedAt.getTime())} ago, ${how}: ${did}`
}

const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`

function list(counts: readonly (readonly [string, number])[]): string {
  const shown = counts.filter(([, number]) => number > 0).map(([name, number]) => `${number} ${name}`)
  return shown.length === 0 ? '' : ` (${shown.join(', ')})`
}

function ago(ms: number): string {
  const seconds = Math.max(0, Math.round(ms / 1_000))
  if (seconds < 120) return `${seconds} s`
  const minutes = Math.round(seconds / 60)
  return minutes < 120 ? `${minutes} min` : `${Math.round(minutes / 60)} h`
}
