// A job's fate: every outcome under every branch of a policy, with the reason a person will read.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../../src/domain/decision.js'
import { type Failure, KINDS, type Kind, RETRIABLE } from '../../src/domain/failure.js'
import type { Outcome } from '../../src/domain/outcome.js'
import { type Backoff, DEFAULT_POLICY, type Policy } from '../../src/domain/policy.js'
import { delays, exponential, fixed, immediate, linear } from '../../src/policy/backoff.js'
import { decide, type Situation } from '../../src/policy/decide.js'

const failure = (change: Partial<Failure> = {}): Failure => ({
  kind: 'transient',
  because: 'HTTP status 503',
  type: 'HttpError',
  message: 'busy',
  causes: [],
  fingerprint: 'v1:busy',
  ...change,
})
const failed = (change: Partial<Failure> = {}): Outcome => ({ type: 'failed', failure: failure(change) })
const timedOut: Outcome = { type: 'timed_out', failure: failure({ because: "Redrive's own error TIMED_OUT" }) }
const lost: Outcome = { type: 'lost', failure: failure({ kind: 'lost', because: 'its worker is gone' }) }

interface Given {
  readonly outcome: Outcome
  readonly attempt?: number
  readonly timesLost?: number
  readonly policy?: Partial<Policy>
  /** Since the first attempt began. */
  readonly spentMs?: number
  readonly chance?: number
}

const fate = ({ outcome, attempt = 1, timesLost = 0, policy = {}, spentMs = 0, chance = 0.5 }: Given): Decision =>
  decide({
    outcome,
    job: { attempt, lost: timesLost, firstClaimedAt: 1_000 },
    policy: { ...DEFAULT_POLICY, jitter: false, ...policy },
    now: 1_000 + spentMs,
    random: () => chance,
  })

describe('the end of an attempt', () => {
  it.each<[string, Given, Decision]>([
    [
      'a success completes the job',
      { outcome: { type: 'succeeded', result: { key: 'a' } }, attempt: 2 },
      { type: 'complete', result: { key: 'a' }, reason: 'succeeded on attempt 2' },
    ],
    [
      'a cancellation ends it for the reason given',
      { outcome: { type: 'cancelled', reason: 'the order was withdrawn' } },
      { type: 'cancel', reason: 'the order was withdrawn' },
    ],
    [
      'a snooze brings it back later and spends nothing, however often it ran',
      { outcome: { type: 'snoozed', delayMs: 90_000 }, attempt: 99 },
      {
        type: 'return',
        cause: 'snooze',
        delayMs: 90_000,
        reason: 'snoozed by its handler for 90 s; no attempt spent',
      },
    ],
    [
      'a shutdown returns what had started, as an interruption',
      { outcome: { type: 'interrupted', started: true }, attempt: 99 },
      { type: 'return', cause: 'interruption', delayMs: 0, reason: 'its worker shut down; no attempt spent' },
    ],
    [
      'a shutdown returns what had not started, without a trace',
      { outcome: { type: 'interrupted', started: false }, attempt: 99 },
      { type: 'return', cause: 'none', delayMs: 0, reason: 'given back before it started; no attempt spent' },
    ],
    [
      'a failure that may heal is retried after the backoff',
      { outcome: failed() },
      { type: 'retry', delayMs: 5_000, reason: 'transient (HTTP status 503): attempt 2 of 3 in 5 s' },
    ],
    [
      'a short wait is told in milliseconds',
      { outcome: failed(), policy: { backoff: fixed({ delayMs: 250 }) } },
      { type: 'retry', delayMs: 250, reason: 'transient (HTTP status 503): attempt 2 of 3 in 250 ms' },
    ],
    [
      'what the other side asked for beats the backoff',
      { outcome: failed({ kind: 'rate_limited', because: 'HTTP status 429', retryAfterMs: 120_000 }) },
      {
        type: 'retry',
        delayMs: 120_000,
        reason: 'rate_limited (HTTP status 429): attempt 2 of 3 in 120 s, as the other side asked',
      },
    ],
    [
      'an ask of no time at all leaves the backoff as it is, and is not claimed as asked',
      { outcome: failed({ kind: 'rate_limited', because: 'HTTP status 429', retryAfterMs: 0 }) },
      { type: 'retry', delayMs: 5_000, reason: 'rate_limited (HTTP status 429): attempt 2 of 3 in 5 s' },
    ],
    [
      'the last attempt buries',
      { outcome: failed(), attempt: 3 },
      { type: 'bury', reason: 'transient (HTTP status 503): attempt 3 of 3' },
    ],
    [
      'a timeout is a failure like any other',
      { outcome: timedOut, attempt: 2 },
      {
        type: 'retry',
        delayMs: 15_000,
        reason: "transient (Redrive's own error TIMED_OUT): attempt 3 of 3 in 15 s",
      },
    ],
    [
      'a timeout on the last attempt buries',
      { outcome: timedOut, attempt: 3 },
      { type: 'bury', reason: "transient (Redrive's own error TIMED_OUT): attempt 3 of 3" },
    ],
    [
      'what its handler buries is dead at once, whatever its kind',
      {
        outcome: {
          type: 'failed',
          final: true,
          failure: failure({ because: 'its handler said so', message: 'no user' }),
        },
      },
      { type: 'bury', reason: 'no retry can help: its handler said so: no user' },
    ],
    [
      'a retry that would come after the total limit buries instead',
      { outcome: failed(), spentMs: 8_000, policy: { totalMs: 10_000 } },
      {
        type: 'bury',
        reason: 'transient (HTTP status 503): the next attempt, in 5 s, is past the total limit of 10 s',
      },
    ],
    [
      'a retry exactly at the total limit is still made',
      { outcome: failed(), spentMs: 5_000, policy: { totalMs: 10_000 } },
      { type: 'retry', delayMs: 5_000, reason: 'transient (HTTP status 503): attempt 2 of 3 in 5 s' },
    ],
    [
      'a worker that dies for the first time does not make its jobs wait',
      { outcome: lost },
      { type: 'retry', delayMs: 0, reason: 'lost (its worker is gone): attempt 2 of 3 in 0 ms' },
    ],
    [
      'the second time it waits like any other',
      { outcome: lost, timesLost: 1, attempt: 2 },
      { type: 'retry', delayMs: 15_000, reason: 'lost (its worker is gone): attempt 3 of 3 in 15 s' },
    ],
    [
      'the third time it is poison, whatever attempts are left',
      { outcome: lost, timesLost: 2, attempt: 3, policy: { attempts: 50 } },
      { type: 'bury', reason: 'poison: its worker died 3 times while it ran' },
    ],
    [
      'a policy may bury at the first loss',
      { outcome: lost, policy: { lostLimit: 1 } },
      { type: 'bury', reason: 'poison: its worker died once while it ran' },
    ],
    [
      'a loss on the last attempt buries before it is poison',
      { outcome: lost, attempt: 3 },
      { type: 'bury', reason: 'lost (its worker is gone): attempt 3 of 3' },
    ],
  ])('%s', (_, given, decision) => {
    expect(fate(given)).toEqual(decision)
  })

  it('with dead letters off a job that would die is cancelled, and the reason says both', () => {
    const off = { deadLetter: false }
    const tail = '; dead letters are off'
    expect(fate({ outcome: failed(), attempt: 3, policy: off })).toEqual({
      type: 'cancel',
      reason: `transient (HTTP status 503): attempt 3 of 3${tail}`,
    })
    expect(fate({ outcome: lost, timesLost: 2, policy: off })).toEqual({
      type: 'cancel',
      reason: `poison: its worker died 3 times while it ran${tail}`,
    })
  })

  it.each(KINDS)('of kind %s is retried or not as the kinds say, and a policy can turn that round', kind => {
    const outcome = failed({ kind })
    const refused = { type: 'bury', reason: `${kind} (HTTP status 503): failures of this kind are not retried` }
    expect(fate({ outcome })).toEqual(RETRIABLE[kind] ? expect.objectContaining({ type: 'retry' }) : refused)
    const retryKinds = { ...RETRIABLE, [kind]: !RETRIABLE[kind] }
    expect(fate({ outcome, policy: { retryKinds } })).toEqual(
      RETRIABLE[kind] ? refused : expect.objectContaining({ type: 'retry' }),
    )
  })
})

describe('whatever happens', () => {
  const ms = fc.nat(1e7)
  const anyBackoff: fc.Arbitrary<Backoff> = fc.oneof(
    fc.record({ initialMs: ms, factor: fc.double({ min: 1, max: 1000, noNaN: true }) }).map(exponential),
    fc.record({ initialMs: ms, stepMs: ms }).map(linear),
    fc.record({ delayMs: ms }).map(fixed),
    fc.array(ms, { minLength: 1, maxLength: 5 }).map(delays),
    fc.constant(immediate()),
  )
  const anyPolicy: fc.Arbitrary<Policy> = fc.record({
    attempts: fc.integer({ min: 1, max: 20 }),
    backoff: anyBackoff,
    jitter: fc.boolean(),
    minMs: fc.nat(1e4),
    maxMs: fc.nat(1e6),
    totalMs: fc.option(fc.integer({ min: 1, max: 1e7 })),
    timeoutMs: fc.constant(1_000),
    retryKinds: fc.record(Object.fromEntries(KINDS.map(kind => [kind, fc.boolean()]))) as fc.Arbitrary<
      Record<Kind, boolean>
    >,
    deadLetter: fc.boolean(),
    lostLimit: fc.integer({ min: 1, max: 5 }),
  })
  const anyFailure: fc.Arbitrary<Failure> = fc
    .record({ kind: fc.constantFrom(...KINDS), retryAfterMs: fc.option(fc.nat(2e8), { nil: undefined }) })
    .map(({ kind, retryAfterMs }) => failure({ kind, ...(retryAfterMs !== undefined && { retryAfterMs }) }))
  const anyOutcome: fc.Arbitrary<Outcome> = fc.oneof(
    fc.constant<Outcome>({ type: 'succeeded', result: null }),
    fc.record({ type: fc.constant('failed' as const), failure: anyFailure, final: fc.boolean() }),
    fc.record({ type: fc.constant('timed_out' as const), failure: anyFailure }),
    fc.record({ type: fc.constant('lost' as const), failure: anyFailure }),
    fc.record({ type: fc.constant('snoozed' as const), delayMs: ms }),
    fc.record({ type: fc.constant('interrupted' as const), started: fc.boolean() }),
    fc.constant<Outcome>({ type: 'cancelled', reason: 'not wanted' }),
  )
  const anySituation: fc.Arbitrary<Situation> = fc
    .record({
      outcome: anyOutcome,
      attempt: fc.integer({ min: 1, max: 25 }),
      timesLost: fc.nat(6),
      policy: anyPolicy,
      spentMs: fc.nat(2e7),
      chance: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    })
    .map(({ outcome, attempt, timesLost, policy, spentMs, chance }) => ({
      outcome,
      job: { attempt, lost: timesLost, firstClaimedAt: 5_000 },
      policy,
      now: 5_000 + spentMs,
      random: () => chance,
    }))
  const always = (holds: (situation: Situation, decision: Decision) => void) =>
    fc.assert(
      fc.property(anySituation, situation => holds(situation, decide(situation))),
      { numRuns: 500 },
    )

  it('never retries past its attempts, its kinds or its total limit', () => {
    always(({ outcome, job, policy, now }, decision) => {
      if (decision.type !== 'retry') return
      expect(job.attempt).toBeLessThan(policy.attempts)
      expect('failure' in outcome && policy.retryKinds[outcome.failure.kind]).toBe(true)
      if (policy.totalMs !== null)
        expect(now - job.firstClaimedAt + decision.delayMs).toBeLessThanOrEqual(policy.totalMs)
    })
  })

  it('waits within its bounds, or what was asked for and no more than a day', () => {
    always(({ outcome, policy }, decision) => {
      if (decision.type !== 'retry' || decision.delayMs === 0) return
      const asked = 'failure' in outcome ? outcome.failure.retryAfterMs : undefined
      const [least, most] = asked
        ? [Math.min(asked, 86_400_000), 86_400_000]
        : [policy.minMs, Math.max(policy.minMs, policy.maxMs)]
      expect(decision.delayMs).toBeGreaterThanOrEqual(least)
      expect(decision.delayMs).toBeLessThanOrEqual(most)
    })
  })

  it('never buries with dead letters off, and never holds', () => {
    always(({ policy }, decision) => {
      expect(decision.type).not.toBe('hold')
      if (!policy.deadLetter) expect(decision.type).not.toBe('bury')
    })
  })

  it('never runs a job again whose worker died as often as the limit allows', () => {
    always(({ outcome, job, policy }, decision) => {
      if (outcome.type === 'lost' && job.lost + 1 >= policy.lostLimit) expect(decision.type).toMatch(/^(bury|cancel)$/)
    })
  })

  it('says why, and says the same for the same chance', () => {
    always((situation, decision) => {
      expect(decision.reason).not.toBe('')
      expect(decide(situation)).toEqual(decision)
    })
  })
})
