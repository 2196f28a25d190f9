// What the doctor says about what was seen: each finding in words, with what to do about it. Pure.
import type { BreakerState } from '../domain/breaker.js'
import type { LiveTable, ServerState } from '../ledger/doctor.js'
import type { Lines } from '../ledger/health.js'
import type { QueueSettings } from '../ledger/queue.js'
import { counted, duration } from '../policy/say.js'

export const DOCTOR_CHECKS = [
  'database',
  'migrations',
  'clock',
  'connections',
  'transactions',
  'vacuum',
  'workers',
  'paused queues',
  'recovery',
  'breakers',
] as const
export type DoctorCheck = (typeof DOCTOR_CHECKS)[number]

export interface Finding {
  readonly check: DoctorCheck
  /** `skipped`: it could not be looked at, because of what was found before. */
  readonly status: 'ok' | 'problem' | 'skipped'
  readonly message: string
  /** What to do about a problem. */
  readonly advice?: string
}

export const fine = (check: DoctorCheck, message: string): Finding => ({ check, status: 'ok', message })
export const skipped = (check: DoctorCheck, message: string): Finding => ({ check, status: 'skipped', message })
export const problem = (check: DoctorCheck, message: string, advice: string): Finding => ({
  check,
  status: 'problem',
  message,
  advice,
})

const SKEW_MS = 2_000
const LEAST_CONNECTIONS_LEFT = 5
const DEAD_ROWS = 200_000
const VACUUM_EXPECTED_MS = 600_000
const SILENT_MS = 60_000
const OVERDUE_MS = 60_000
const TOLD = 20

/** `offMs`: how far this process's clock is ahead; `unsureMs`: how long the answer was under way. */
export function clockFinding(offMs: number, unsureMs: number): Finding {
  const off = Math.max(0, Math.abs(offMs) - unsureMs)
  if (off < SKEW_MS) return fine('clock', 'This process and the database agree on the time.')
  const side = offMs > 0 ? 'ahead of' : 'behind'
  return problem(
    'clock',
    `The clock of this process is ${duration(off)} ${side} the database's.`,
    'Run NTP on both machines. Jobs are timed by the database alone, but ids and logs tell the time of each process.',
  )
}

export function connectionsFinding({ connectionsAllowed, connectionsUsed }: ServerState): Finding {
  const left = connectionsAllowed - connectionsUsed
  const told = `${connectionsUsed} of ${connectionsAllowed} connections are in use.`
  if (left > Math.max(LEAST_CONNECTIONS_LEFT, connectionsAllowed * 0.1)) return fine('connections', told)
  return problem(
    'connections',
    `Only ${counted(Math.max(0, left), 'connection')} left: ${told}`,
    'Lower `poolSize` or the number of processes, use a pooler, or raise max_connections.',
  )
}

export function transactionFindings({ holders, hiddenSessions }: ServerState): Finding[] {
  const hidden =
    hiddenSessions > 0
      ? ` ${counted(hiddenSessions, 'session')} of other roles could not be seen: grant pg_read_all_stats to look at them.`
      : ''
  if (holders.length === 0) return [fine('transactions', `No long transaction holds vacuum back.${hidden}`)]
  return holders.map(({ kind, name, of, state, heldMs }) => {
    const since = heldMs === null ? '' : ` for ${duration(heldMs)}`
    const message = `A ${kind} holds vacuum back${since}: ${name} (${of}; ${state}).`
    return problem('transactions', message, END_OF[kind](name))
  })
}

const END_OF = {
  transaction: (pid: string) =>
    `Let it end, or end it: pg_terminate_backend(${pid}). Set idle_in_transaction_session_timeout against the next one.`,
  'prepared transaction': (gid: string) => `COMMIT PREPARED or ROLLBACK PREPARED '${gid}'.`,
  'replication slot': (slot: string) => `Start its reader again, or drop it: pg_drop_replication_slot('${slot}').`,
} as const

export function vacuumFinding({ autovacuum }: ServerState, table: LiveTable): Finding {
  const { deadRows, liveRows, vacuumOff, vacuumedMsAgo } = table
  if (!autovacuum || vacuumOff) {
    const where = autovacuum ? 'of the table job' : 'of the server'
    const how = autovacuum ? 'Reset autovacuum_enabled of redrive.job' : 'Set autovacuum = on'
    return problem('vacuum', `Autovacuum ${where} is off.`, `${how}: without it claims slow down day by day.`)
  }
  const rows = `The table of live jobs has ${counted(deadRows, 'dead row')} beside ${counted(liveRows, 'live one')}`
  const late = vacuumedMsAgo === null || vacuumedMsAgo > VACUUM_EXPECTED_MS
  if (deadRows < DEAD_ROWS || deadRows < liveRows * 2 || !late) return fine('vacuum', `${rows}.`)
  const last = vacuumedMsAgo === null ? 'was never vacuumed' : `was last vacuumed ${duration(vacuumedMsAgo)} ago`
  return problem(
    'vacuum',
    `${rows} and ${last}.`,
    'See whether a long transaction holds vacuum back; then run VACUUM on it.',
  )
}

export function workerFindings({ lanes, silentSessions }: Lines): Finding[] {
  const waiting = lanes.filter(({ paused }) => !paused)
  const unworked = longestByQueue(waiting.filter(({ worked }) => !worked))
  const unknown = waiting.filter(({ worked, known }) => worked && !known)
  const silent = silentSessions.filter(({ silentMs }) => silentMs > SILENT_MS)
  const findings = [
    ...unworked.map(({ queue, waitedMs }) =>
      problem(
        'workers',
        `Jobs wait in queue ${queue} and no worker takes them; the oldest has waited for ${duration(waitedMs)}.`,
        'Start a worker with the jobs of this queue: redrive work <modules…>.',
      ),
    ),
    ...unknown.map(({ queue, name, waitedMs }) =>
      problem(
        'workers',
        `No worker of queue ${queue} knows job ${name}; the oldest has waited for ${duration(waitedMs)}.`,
        'Deploy the worker that has this job, or cancel what was enqueued under a wrong name.',
      ),
    ),
    ...silent.map(({ worker, silentMs }) =>
      problem(
        'workers',
        `Worker ${worker} lost its lease ${duration(silentMs)} ago and nobody has taken over its jobs.`,
        'Run recovery: redrive recover.',
      ),
    ),
  ]
  return findings.length > 0 ? atMost(findings) : [fine('workers', 'Every queue with waiting jobs has a worker.')]
}

export function pausedFindings({ lanes }: Lines, settings: readonly QueueSettings[], now: number): Finding[] {
  const findings = longestByQueue(lanes.filter(({ paused }) => paused)).map(({ queue, waitedMs }) => {
    const { pausedBy, pausedAt } = settings.find(({ name }) => name === queue) ?? {}
    const by = pausedBy === undefined ? '' : ` by ${pausedBy}`
    const since = pausedAt === undefined ? '' : ` ${duration(now - pausedAt.getTime())} ago`
    return problem(
      'paused queues',
      `Queue ${queue} was paused${by}${since}, and jobs wait in it; the oldest has waited for ${duration(waitedMs)}.`,
      `When the reason is gone: redrive queue resume ${queue}.`,
    )
  })
  return findings.length > 0 ? atMost(findings) : [fine('paused queues', 'No jobs wait in a paused queue.')]
}

export function recoveryFindings({ recovery, overdueMs, alive }: Lines, intervalMs: number): Finding[] {
  const findings: Finding[] = []
  if (overdueMs > OVERDUE_MS) {
    const message = `A delayed job or retry was due ${duration(overdueMs)} ago and nobody has put it in line.`
    findings.push(problem('recovery', message, 'Start a worker: each puts due jobs in line, whatever its queues.'))
  }
  if (alive && recovery && recovery.startedMsAgo > intervalMs * 2) {
    const message = `Recovery last ran ${duration(recovery.startedMsAgo)} ago; it is due every ${duration(intervalMs)}.`
    findings.push(problem('recovery', message, 'Start a worker or `redrive serve`, or run it now: redrive recover.'))
  }
  if (recovery?.error !== undefined) {
    const message = `The last recovery run failed: ${recovery.error.replace(/\.$/, '')}.`
    findings.push(problem('recovery', message, 'Mend the cause, then run it now: redrive recover.'))
  }
  if (findings.length > 0) return findings
  return [fine('recovery', recovery ? `It last ran ${duration(recovery.startedMsAgo)} ago.` : 'It has not run yet.')]
}

export interface BreakerSeen {
  readonly service: string
  readonly state: BreakerState
  readonly sinceMs: number
  readonly reason: string
  readonly shadow: boolean
}

export function breakerFindings(seen: readonly BreakerSeen[]): Finding[] {
  const findings = seen.flatMap(({ service, state, sinceMs, reason, shadow }) => {
    // One in shadow mode holds nothing, unless a person isolated its service.
    if (state === 'closed' || (shadow && state !== 'isolated')) return []
    const said = `${STATES[state]} for ${duration(sinceMs)}: ${reason.replace(/\.$/, '')}`
    const advice =
      state === 'isolated'
        ? `When the service is well again: redrive service release ${service}.`
        : 'See whether the service is down; its jobs are held, and follow by themselves when it is back.'
    return [problem('breakers', `The breaker of ${service} has been ${said}.`, advice)]
  })
  return findings.length > 0 ? atMost(findings) : [fine('breakers', 'No breaker is open.')]
}

const STATES = { closed: 'closed', open: 'open', half_open: 'trying again', isolated: 'isolated' } as const

function longestByQueue(lanes: Lines['lanes']): Lines['lanes'] {
  const byQueue = new Map<string, Lines['lanes'][number]>()
  for (const lane of lanes) {
    if ((byQueue.get(lane.queue)?.waitedMs ?? -1) < lane.waitedMs) byQueue.set(lane.queue, lane)
  }
  return [...byQueue.values()]
}

function atMost(findings: readonly Finding[]): Finding[] {
  const told = findings.slice(0, TOLD)
  const [first] = findings
  if (!first || findings.length === told.length) return told
  return [...told, problem(first.check, `And ${findings.length - TOLD} more.`, 'Mend these first.')]
}
