// A job's fate while its service is down, or its service's retry budget is spent.
import { describe, expect, it } from 'vitest'
import type { Failure } from '../../src/domain/failure.js'
import { DEFAULT_POLICY, type Policy } from '../../src/domain/policy.js'
import type { BreakerView } from '../../src/policy/breaker.js'
import { decide } from '../../src/policy/decide.js'
import { aFailure } from '../support/story.js'

const open: BreakerView = {
  service: 's3',
  state: 'open',
  kinds: ['transient', 'network', 'system'],
  holding: true,
  suspected: false,
  lookInMs: 8_000,
}

interface Given {
  readonly failure?: Partial<Failure>
  readonly attempt?: number
  readonly policy?: Partial<Policy>
  readonly breaker?: BreakerView
  readonly waitMs?: number
}

const fate = ({ failure = {}, attempt = 1, policy = {}, breaker, waitMs }: Given) =>
  decide({
    outcome: { type: 'failed', failure: aFailure(failure) },
    job: { attempt, lost: 0, firstClaimedAt: 0 },
    policy: { ...DEFAULT_POLICY, jitter: false, ...policy },
    now: 1_000,
    random: () => 0.5,
    breaker,
    budget: waitMs === undefined ? undefined : { waitMs },
  })

describe('while its service is down', () => {
  it('a job that fails is held until the breaker is looked at, and a little spread; its attempt is not spent', () => {
    expect(fate({ breaker: open })).toEqual({
      type: 'hold',
      delayMs: 9_000,
      reason: 'transient (HTTP status 503): s3 is down and its breaker open; held for 9 s, no attempt spent',
    })
  })

  it('no job dies of it, not even by its last attempt', () => {
    expect(fate({ breaker: open, attempt: 3 })).toMatchObject({ type: 'hold' })
  })

  it('a job that only fails along with others is not buried before the breaker was judged', () => {
    const suspected = { ...open, state: 'closed', holding: false, suspected: true, lookInMs: 1_000 } as const
    expect(fate({ breaker: suspected, attempt: 3 })).toMatchObject({
      type: 'hold',
      reason: expect.stringContaining('s3 fails for other jobs as well'),
    })
    expect(fate({ breaker: suspected, attempt: 2 })).toMatchObject({ type: 'retry' })
  })

  it('a job ends by its own fault all the same', () => {
    expect(fate({ breaker: open, failure: { kind: 'validation' } })).toMatchObject({ type: 'bury' })
    expect(fate({ breaker: open, attempt: 3, failure: { service: 'mail' } })).toMatchObject({ type: 'bury' })
    expect(fate({ breaker: open, failure: { kind: 'rate_limited', retryAfterMs: 3_000 } })).toMatchObject({
      type: 'retry',
    })
    const never = { retryKinds: { ...DEFAULT_POLICY.retryKinds, transient: false } }
    expect(fate({ breaker: open, policy: never })).toMatchObject({ type: 'bury' })
  })

  it('its total limit still ends it', () => {
    expect(fate({ breaker: open, policy: { totalMs: 10_000 } })).toMatchObject({ type: 'hold' })
    expect(fate({ breaker: open, policy: { totalMs: 9_999 } })).toMatchObject({
      type: 'bury',
      reason: expect.stringContaining('s3 is looked at again in 9 s, past the total limit of 10 s'),
    })
  })
})

describe('when the retry budget is spent', () => {
  it('a retry waits for its place; the attempt that ran is spent', () => {
    expect(fate({ waitMs: 20_000 })).toEqual({
      type: 'hold',
      delayMs: 20_000,
      spent: true,
      reason: 'the retry budget of its service is spent: attempt 2 of 3 in 20 s',
    })
  })

  it('nothing changes for a retry that would come later anyway, nor for a job that ends', () => {
    expect(fate({ waitMs: 5_000 })).toMatchObject({ type: 'retry', delayMs: 5_000 })
    expect(fate({ waitMs: 20_000, attempt: 3 })).toMatchObject({ type: 'bury' })
  })

  it('it is not made to wait past its total limit', () => {
    expect(fate({ waitMs: 20_000, policy: { totalMs: 11_000 } })).toMatchObject({ type: 'hold', delayMs: 10_000 })
  })
})
