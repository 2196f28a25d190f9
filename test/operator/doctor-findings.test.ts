// What the doctor says about what was seen: when it speaks up, and that it always says what to do.
import { describe, expect, it } from 'vitest'
import type { LiveTable, ServerState } from '../../src/ledger/doctor.js'
import type { Lines, WaitingLane } from '../../src/ledger/health.js'
import {
  breakerFindings,
  clockFinding,
  connectionsFinding,
  type Finding,
  pausedFindings,
  recoveryFindings,
  transactionFindings,
  vacuumFinding,
  workerFindings,
} from '../../src/operator/doctor-findings.js'

const server = (change: Partial<ServerState> = {}): ServerState => ({
  version: '16.1',
  now: 0,
  connectionsAllowed: 97,
  connectionsUsed: 10,
  hiddenSessions: 0,
  autovacuum: true,
  holders: [],
  ...change,
})
const lane = (queue: string, change: Partial<WaitingLane> = {}): WaitingLane => ({
  queue,
  name: 'job',
  waitedMs: 60_000,
  paused: false,
  worked: true,
  known: true,
  service: null,
  ...change,
})
const lines = (change: Partial<Lines> = {}): Lines => ({
  now: 1_000_000,
  lanes: [],
  silentSessions: [],
  overdueMs: 0,
  openDeadLetters: 0,
  alive: true,
  empty: false,
  ...change,
})
const live = (change: Partial<LiveTable> = {}): LiveTable => ({
  liveRows: 10,
  deadRows: 10,
  vacuumOff: false,
  vacuumedMsAgo: null,
  ...change,
})

/** Problems only, each with its advice. */
function problems(findings: Finding | readonly Finding[]): string[] {
  const found = [findings].flat() as Finding[]
  for (const { status, advice } of found) expect(advice === undefined).toBe(status !== 'problem')
  return found.flatMap(({ status, message }) => (status === 'problem' ? [message] : []))
}

it('clocks may differ by what the answer took, and a little more', () => {
  expect(problems(clockFinding(1_900, 0))).toEqual([])
  expect(problems(clockFinding(-9_000, 8_000))).toEqual([])
  expect(problems(clockFinding(3_600_000, 0))).toEqual(["The clock of this process is 1 h ahead of the database's."])
  expect(problems(clockFinding(-60_000, 0))[0]).toContain('1 min behind')
})

it('connections run out before they are gone', () => {
  expect(problems(connectionsFinding(server()))).toEqual([])
  expect(problems(connectionsFinding(server({ connectionsUsed: 90 })))[0]).toContain('Only 7 connections left')
  expect(problems(connectionsFinding(server({ connectionsUsed: 99 })))[0]).toContain('Only 0 connections left')
})

it('whatever holds vacuum back is named, with how to end it', () => {
  const holders = [
    { kind: 'transaction', name: '123', of: 'app, psql', state: 'idle in transaction', heldMs: 3_600_000 },
    { kind: 'prepared transaction', name: 'two-phase', of: 'app', state: 'prepared', heldMs: 400_000 },
    { kind: 'replication slot', name: 'old', of: 'logical', state: 'not in use', heldMs: null },
  ] as const
  const found = transactionFindings(server({ holders }))
  expect(problems(found)).toEqual([
    'A transaction holds vacuum back for 1 h: 123 (app, psql; idle in transaction).',
    'A prepared transaction holds vacuum back for 6.7 min: two-phase (app; prepared).',
    'A replication slot holds vacuum back: old (logical; not in use).',
  ])
  expect(found[0]?.advice).toContain('pg_terminate_backend(123)')
  expect(transactionFindings(server({ hiddenSessions: 2 }))[0]).toMatchObject({
    status: 'ok',
    message: expect.stringContaining('2 sessions of other roles could not be seen'),
  })
})

it('vacuum is missed when it is off, or late with much to do', () => {
  expect(problems(vacuumFinding(server(), live()))).toEqual([])
  expect(problems(vacuumFinding(server({ autovacuum: false }), live()))).toEqual(['Autovacuum of the server is off.'])
  expect(problems(vacuumFinding(server(), live({ vacuumOff: true })))).toEqual(['Autovacuum of the table job is off.'])
  const bloated = { deadRows: 1_000_000, liveRows: 10 }
  expect(problems(vacuumFinding(server(), live(bloated)))[0]).toContain('1,000,000 dead rows')
  expect(problems(vacuumFinding(server(), live({ ...bloated, vacuumedMsAgo: 60_000 })))).toEqual([])
  expect(problems(vacuumFinding(server(), live({ ...bloated, vacuumedMsAgo: 3_600_000 })))[0]).toContain('1 h ago')
})

describe('queues', () => {
  it('that nobody works on are told of once each, by the job that waits longest', () => {
    const lanes = [
      lane('a', { worked: false }),
      lane('a', { worked: false, name: 'other', waitedMs: 120_000 }),
      lane('b', { known: false, name: 'unknown' }),
      lane('c'),
      lane('d', { worked: false, paused: true }),
    ]
    expect(problems(workerFindings(lines({ lanes })))).toEqual([
      'Jobs wait in queue a and no worker takes them; the oldest has waited for 2 min.',
      'No worker of queue b knows job unknown; the oldest has waited for 1 min.',
    ])
    const silentSessions = [
      { worker: 'w1', silentMs: 5_000 },
      { worker: 'w2', silentMs: 600_000 },
    ]
    expect(problems(workerFindings(lines({ silentSessions })))[0]).toContain('Worker w2 lost its lease 10 min ago')
  })

  it('are told of up to a number', () => {
    const lanes = Array.from({ length: 50 }, (_, index) => lane(`q${index}`, { worked: false }))
    const found = problems(workerFindings(lines({ lanes })))
    expect(found).toHaveLength(21)
    expect(found.at(-1)).toBe('And 30 more.')
  })

  it('that are paused with jobs in them are told of, with who did it', () => {
    const settings = [{ name: 'a', paused: true, pausedBy: 'ada', pausedAt: new Date(400_000) }]
    const found = pausedFindings(lines({ lanes: [lane('a', { paused: true }), lane('b')] }), settings, 1_000_000)
    expect(problems(found)).toEqual([
      'Queue a was paused by ada 10 min ago, and jobs wait in it; the oldest has waited for 1 min.',
    ])
    expect(found[0]?.advice).toContain('redrive queue resume a')
  })
})

it('recovery is overdue after two intervals, and says if it failed', () => {
  const after = (startedMsAgo: number, error?: string) =>
    lines({ recovery: { startedMsAgo, ...(error !== undefined && { error }) } })
  expect(problems(recoveryFindings(lines(), 300_000))).toEqual([])
  expect(problems(recoveryFindings(after(500_000), 300_000))).toEqual([])
  expect(problems(recoveryFindings(after(700_000), 300_000))[0]).toContain('it is due every 5 min')
  expect(problems(recoveryFindings({ ...after(700_000), alive: false }, 300_000))).toEqual([])
  expect(problems(recoveryFindings(after(1_000, 'disk full.'), 300_000))).toEqual([
    'The last recovery run failed: disk full.',
  ])
  expect(problems(recoveryFindings(lines({ overdueMs: 120_000 }), 300_000))[0]).toContain('was due 2 min ago')
})

it('breakers that hold jobs are told of, shadows are not', () => {
  const breaker = { service: 'bank', sinceMs: 60_000, reason: '5 failures in a row.', shadow: false } as const
  expect(problems(breakerFindings([{ ...breaker, state: 'closed' }]))).toEqual([])
  expect(problems(breakerFindings([{ ...breaker, state: 'open', shadow: true }]))).toEqual([])
  expect(problems(breakerFindings([{ ...breaker, state: 'open' }]))).toEqual([
    'The breaker of bank has been open for 1 min: 5 failures in a row.',
  ])
  const [isolated] = breakerFindings([{ ...breaker, state: 'isolated', shadow: true }])
  expect(isolated?.advice).toContain('redrive service release bank')
})
