// The life of jobs as simply as it can be told: a map, a clock, and one method for each thing that can happen. What the
// ledger does with SQL must come to the same, whatever the order of events.
import type { Decision } from '../../src/domain/decision.js'
import type { JobId, Lease, SessionId } from '../../src/domain/ids.js'
import type { RecoveryStatus, State } from '../../src/domain/lifecycle.js'
import type { Outcome } from '../../src/domain/outcome.js'

export interface Letter {
  status: RecoveryStatus
  totalAttempts: number
  recoveryAttempts: number
  lost: number
  seq: number
}

export interface ModelJob {
  readonly id: JobId
  readonly queue: string
  readonly priority: number
  readonly uniqueKey: string | undefined
  state: State
  attempt: number
  snoozes: number
  holds: number
  interruptions: number
  lost: number
  redrives: number
  seq: number
  runAt: number
  firstClaimedAt: number | undefined
  claim: { readonly lease: Lease; readonly session: SessionId } | undefined
  started: boolean
  cancelAsked: boolean
  letter: Letter | undefined
}

export interface Claim {
  readonly id: JobId
  readonly lease: Lease
}

const LIVE: readonly State[] = ['scheduled', 'waiting', 'active', 'retrying', 'held']
const DELAYED: readonly State[] = ['scheduled', 'retrying', 'held']

export class Model {
  readonly jobs = new Map<JobId, ModelJob>()
  readonly paused = new Set<string>()
  readonly gone = new Set<SessionId>()
  /** Leases that ended: whoever shows one is refused. */
  readonly stale: Claim[] = []
  readonly ended = { completed: 0, cancelled: 0, dead: 0 }
  /** Attempts that must be on record. */
  recorded = 0
  now: number
  private seq = 0

  constructor(now: number) {
    this.now = now
  }

  in(...states: State[]): ModelJob[] {
    return [...this.jobs.values()].filter(job => states.includes(job.state))
  }

  live = (): ModelJob[] => this.in(...LIVE)
  holderOf = (queue: string, key: string | undefined): ModelJob | undefined =>
    key === undefined ? undefined : this.live().find(job => job.queue === queue && job.uniqueKey === key)

  enqueue(id: JobId, queue: string, priority: number, delayMs: number, uniqueKey: string | undefined): ModelJob {
    const holder = this.holderOf(queue, uniqueKey)
    if (holder) return holder
    const job: ModelJob = {
      ...{ id, queue, priority, uniqueKey, redrives: 0, letter: undefined },
      ...this.newLife(delayMs > 0 ? 'scheduled' : 'waiting', delayMs),
    }
    this.jobs.set(id, job)
    return job
  }

  private newLife(state: State, delayMs: number) {
    return {
      ...{ state, attempt: 0, snoozes: 0, holds: 0, interruptions: 0, lost: 0, seq: ++this.seq },
      ...{ runAt: this.now + delayMs, firstClaimedAt: undefined, claim: undefined, started: false, cancelAsked: false },
    }
  }

  /** Who would be claimed, first in line first. */
  next(limit: number): ModelJob[] {
    return this.in('waiting')
      .filter(job => !this.paused.has(job.queue))
      .sort((a, b) => b.priority - a.priority || a.seq - b.seq)
      .slice(0, limit)
  }

  claim(job: ModelJob, session: SessionId, lease: Lease): void {
    job.state = 'active'
    job.attempt += 1
    job.claim = { session, lease }
    job.started = false
    job.firstClaimedAt ??= this.now
  }

  orphans = (): ModelJob[] => this.in('active').filter(job => job.claim && this.gone.has(job.claim.session))

  settle(job: ModelJob, outcome: Outcome, decision: Decision): void {
    if (job.claim) this.stale.push({ id: job.id, lease: job.claim.lease })
    job.claim = undefined
    if (decision.type === 'retry' || decision.type === 'bury') job.lost += outcome.type === 'lost' ? 1 : 0
    if (decision.type !== 'complete' && !(outcome.type === 'interrupted' && !outcome.started)) this.recorded += 1
    switch (decision.type) {
      case 'complete':
        this.end(job, 'completed', 'recovered')
        break
      case 'cancel':
        this.end(job, 'cancelled', 'permanently_failed')
        break
      case 'bury':
        this.bury(job)
        break
      case 'retry':
        this.defer(job, decision.delayMs > 0 ? 'retrying' : 'waiting', decision.delayMs)
        break
      case 'hold':
        job.attempt -= 1
        job.holds += 1
        this.defer(job, 'held', decision.delayMs)
        break
      case 'return':
        job.attempt -= 1
        job.snoozes += decision.cause === 'snooze' ? 1 : 0
        job.interruptions += decision.cause === 'interruption' ? 1 : 0
        this.defer(job, decision.delayMs > 0 ? 'scheduled' : 'waiting', decision.delayMs)
        break
    }
  }

  private end(job: ModelJob, state: 'completed' | 'cancelled', letter: RecoveryStatus): void {
    job.state = state
    this.ended[state] += 1
    if (job.letter) job.letter.status = letter
  }

  private bury(job: ModelJob): void {
    job.state = 'dead'
    this.ended.dead += 1
    const { totalAttempts = 0, recoveryAttempts = 0, lost = 0 } = job.letter ?? {}
    job.letter = {
      status: 'pending',
      totalAttempts: totalAttempts + job.attempt,
      recoveryAttempts,
      lost: lost + job.lost,
      seq: ++this.seq,
    }
  }

  private defer(job: ModelJob, state: State, delayMs: number): void {
    job.state = state
    job.runAt = this.now + Math.round(delayMs)
  }

  promote(): void {
    const due = this.in(...DELAYED).filter(job => job.runAt <= this.now)
    for (const job of due.sort((a, b) => a.runAt - b.runAt || a.seq - b.seq)) {
      job.state = 'waiting'
      job.seq = ++this.seq
    }
  }

  /** True: sent back; false: its unique key is taken. */
  redrive(job: ModelJob): boolean {
    if (this.holderOf(job.queue, job.uniqueKey)) return false
    Object.assign(job, this.newLife('waiting', 0), { redrives: job.redrives + 1 })
    if (job.letter) {
      job.letter.status = 'redriving'
      job.letter.recoveryAttempts += 1
    }
    return true
  }

  cancel(job: ModelJob): 'cancelled' | 'requested' | 'none' {
    if (!LIVE.includes(job.state)) return 'none'
    job.cancelAsked = true
    if (job.state === 'active') return 'requested'
    this.end(job, 'cancelled', 'permanently_failed')
    return 'cancelled'
  }
}
