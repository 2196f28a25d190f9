// Where a job is and why, in words: a table of situations, each with what a person reads.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KINDS } from '../../src/domain/failure.js'
import { STATES } from '../../src/domain/lifecycle.js'
import { DEFAULT_POLICY } from '../../src/domain/policy.js'
import { type AttemptEvidence, explain, explainUnknown, type JobEvidence } from '../../src/policy/explain.js'
import { policySources } from '../../src/policy/policy-layers.js'

const NOW = Date.UTC(2030, 0, 1, 12)
const SECOND = 1_000
const MINUTE = 60 * SECOND

type Change = Partial<Omit<JobEvidence, 'job'>> & { job?: Partial<JobEvidence['job']> }

const evidence = ({ job, ...change }: Change): JobEvidence => ({
  now: NOW,
  policy: DEFAULT_POLICY,
  sources: policySources({}),
  set: {},
  workers: 2,
  known: true,
  ahead: 0,
  aheadUpTo: 1_000,
  ...change,
  job: {
    state: 'waiting',
    queue: 'mail',
    name: 'send',
    attempt: 0,
    lost: 0,
    redrives: 0,
    createdAt: NOW - MINUTE,
    runAt: NOW - 3 * SECOND,
    ...job,
  },
})

const busy = {
  number: 1,
  outcome: 'failed',
  decision: 'retry',
  reason: 'transient (HTTP status 503): attempt 2 of 3 in 5 s',
  at: NOW - 2 * SECOND,
  kind: 'transient',
  because: 'HTTP status 503',
  message: 'the mail server\nis busy',
} as const satisfies AttemptEvidence
const FAILED = `Attempt 1 failed 2 s ago: "the mail server is busy"; that is transient, because HTTP status 503.`
const NONE = 'It may have 3 attempts, says the default: none is made, 3 left.'
const ONE = 'It may have 3 attempts, says the default: 1 is made, 2 left.'
const RETRIED = 'Failures of kind transient are retried, says the default.'
const breaker = {
  service: 'smtp',
  state: 'open',
  since: NOW - 20 * SECOND,
  openUntil: NOW + 10 * SECOND,
  reason: '5 failures in a row: open for 30 s',
  by: 'w1',
  free: false,
} as const

describe('a job', () => {
  it.each<[string, Change, readonly string[]]>([
    [
      'that waits for its turn',
      { ahead: 12 },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        '12 jobs of its name are ahead of it.',
        NONE,
        'Next: attempt 1 of 3, as soon as a worker is free.',
      ],
    ],
    [
      'that waits behind more than can be counted',
      { ahead: 1_000 },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        '1,000 jobs or more of its name are ahead of it.',
        NONE,
        'Next: attempt 1 of 3, as soon as a worker is free.',
      ],
    ],
    [
      'in a paused queue',
      { paused: { by: 'ada', at: NOW - 5 * MINUTE }, workers: 0 },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'Queue mail was paused by ada 5 min ago: none of its jobs starts until somebody resumes it.',
        NONE,
        'Next: attempt 1 of 3, once that is over.',
      ],
    ],
    [
      'that nobody can run',
      { workers: 0 },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'No worker that is alive takes jobs from queue mail, so nobody can run it.',
        NONE,
        'Next: attempt 1 of 3, once that is over.',
      ],
    ],
    [
      'that nobody knows',
      { known: false, job: { name: 'sned' } },
      [
        'Job sned of queue mail has been waiting for a worker for 3 s.',
        'Workers take jobs from queue mail, but none ever announced a job named sned: is the name right, and its code deployed?',
        NONE,
        'Next: attempt 1 of 3, once that is over.',
      ],
    ],
    [
      'whose service is down',
      { breaker },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'Its service smtp is down, and its breaker has been open for 20 s: 5 failures in a row: open for 30 s. The first jobs try it at 2030-01-01 12:00:10 UTC, in 10 s.',
        NONE,
        'Next: attempt 1 of 3, at 2030-01-01 12:00:10 UTC, in 10 s.',
      ],
    ],
    [
      'whose service a person holds',
      { breaker: { ...breaker, state: 'isolated', openUntil: null, by: 'ada', reason: 'the bank called.' } },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'Its service smtp was isolated by ada 20 s ago: the bank called. Its jobs are held until somebody releases it.',
        NONE,
        'Next: attempt 1 of 3, once that is over.',
      ],
    ],
    [
      'whose service is being tried out',
      { breaker: { ...breaker, state: 'half_open', openUntil: null } },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'Its service smtp is being tried out by a few other jobs, since 20 s; if they succeed, the rest follows.',
        NONE,
        'Next: attempt 1 of 3, once that is over.',
      ],
    ],
    [
      'whose service is fine',
      { breaker: { ...breaker, state: 'closed', openUntil: null, free: true } },
      [
        'Job send of queue mail has been waiting for a worker for 3 s.',
        'No job of its name is ahead of it.',
        NONE,
        'Next: attempt 1 of 3, as soon as a worker is free.',
      ],
    ],
    [
      'that is to run later',
      { job: { state: 'scheduled', runAt: NOW + 2 * MINUTE } },
      [
        'Job send of queue mail is scheduled to run at 2030-01-01 12:02:00 UTC, in 2 min.',
        NONE,
        'Next: attempt 1 of 3, at 2030-01-01 12:02:00 UTC, in 2 min.',
      ],
    ],
    [
      'that was snoozed',
      {
        job: { state: 'scheduled', runAt: NOW + MINUTE },
        last: { number: 1, outcome: 'snoozed', decision: 'return', reason: 'snoozed by its handler for 60 s', at: NOW },
      },
      [
        'Job send of queue mail was given back (snoozed by its handler for 60 s) and is to run at 2030-01-01 12:01:00 UTC, in 1 min.',
        NONE,
        'Next: attempt 1 of 3, at 2030-01-01 12:01:00 UTC, in 1 min.',
      ],
    ],
    [
      'that is to be tried again',
      { job: { state: 'retrying', attempt: 1, runAt: NOW + 3 * SECOND }, last: busy, failure: busy },
      [
        'Job send of queue mail failed and is to be tried again at 2030-01-01 12:00:03 UTC, in 3 s.',
        FAILED,
        ONE,
        RETRIED,
        'Next: attempt 2 of 3, at 2030-01-01 12:00:03 UTC, in 3 s.',
      ],
    ],
    [
      'whose retry is due and not in line yet',
      { job: { state: 'retrying', attempt: 1, runAt: NOW - SECOND }, last: busy, failure: busy },
      [
        'Job send of queue mail failed and is to be tried again at 2030-01-01 11:59:59 UTC, 1 s ago.',
        FAILED,
        ONE,
        RETRIED,
        'Next: attempt 2 of 3, at 2030-01-01 11:59:59 UTC, 1 s ago; it is put in line within seconds.',
      ],
    ],
    [
      'under policies set at run time, changed after it failed',
      {
        job: { state: 'retrying', attempt: 1, runAt: NOW + 3 * SECOND },
        failure: busy,
        policy: { ...DEFAULT_POLICY, attempts: 2, retryKinds: { ...DEFAULT_POLICY.retryKinds, transient: false } },
        sources: policySources({ queue: { retryKinds: { transient: false } }, job: { attempts: 2 } }),
        set: { queue: { version: 7, by: 'ada', at: NOW - MINUTE }, job: { version: 2, by: 'bob', at: NOW - SECOND } },
      },
      [
        'Job send of queue mail failed and is to be tried again at 2030-01-01 12:00:03 UTC, in 3 s.',
        FAILED,
        'It may have 2 attempts, says the policy of job send (version 2, set by bob 1 s ago): 1 is made, 1 left.',
        'Failures of kind transient are not retried, says the policy of queue mail (version 7, set by ada 1 min ago).',
        'The policy was changed by bob 1 s ago, after that failure: it holds from the next attempt on.',
        'Next: attempt 2 of 2, at 2030-01-01 12:00:03 UTC, in 3 s.',
      ],
    ],
    [
      'held by the breaker of its service',
      {
        job: { state: 'held', attempt: 0, runAt: NOW + 12 * SECOND },
        last: { ...busy, decision: 'hold', reason: 'smtp is down' },
        failure: busy,
        breaker,
      },
      [
        'Job send of queue mail is held: it is set aside, and is looked at again at 2030-01-01 12:00:12 UTC, in 12 s.',
        'Its service smtp is down, and its breaker has been open for 20 s: 5 failures in a row: open for 30 s. The first jobs try it at 2030-01-01 12:00:10 UTC, in 10 s.',
        FAILED,
        NONE,
        RETRIED,
        'Next: attempt 1 of 3, at 2030-01-01 12:00:12 UTC, in 12 s at the earliest.',
      ],
    ],
    [
      'held by a breaker that has closed meanwhile',
      {
        job: { state: 'held', attempt: 0, runAt: NOW + 2 * SECOND },
        last: { ...busy, decision: 'hold', reason: 'smtp is down; held for 5 s' },
        breaker: { ...breaker, state: 'closed', free: true },
      },
      [
        'Job send of queue mail is held: it is set aside, and is looked at again at 2030-01-01 12:00:02 UTC, in 2 s.',
        'When it was held: smtp is down; held for 5 s.',
        NONE,
        'Next: attempt 1 of 3, at 2030-01-01 12:00:02 UTC, in 2 s at the earliest.',
      ],
    ],
    [
      'held by the retry budget of its service',
      {
        job: { state: 'held', attempt: 1, runAt: NOW + 12 * SECOND },
        last: { ...busy, decision: 'hold', reason: 'the retry budget of its service is spent' },
        failure: busy,
      },
      [
        'Job send of queue mail is held: it is set aside, and is looked at again at 2030-01-01 12:00:12 UTC, in 12 s.',
        'Too many retries of its service are under way: the retry budget of its service is spent.',
        FAILED,
        ONE,
        RETRIED,
        'Next: attempt 2 of 3, at 2030-01-01 12:00:12 UTC, in 12 s at the earliest.',
      ],
    ],
    [
      'held for its rate limit',
      { job: { state: 'held', runAt: NOW + 12 * SECOND }, rateLimit: { name: 'mails', key: 'tenant 7' } },
      [
        'Job send of queue mail is held: it is set aside, and is looked at again at 2030-01-01 12:00:12 UTC, in 12 s.',
        'Its rate limit mails for tenant 7 is used up, and it keeps its place until its turn comes.',
        NONE,
        'Next: attempt 1 of 3, when its turn comes, at 2030-01-01 12:00:12 UTC, in 12 s at the latest.',
      ],
    ],
    [
      'that runs',
      {
        job: { state: 'active', attempt: 1, claimedAt: NOW - 5 * SECOND },
        running: { worker: 'w1', leaseEndsAt: NOW + SECOND, ended: false },
      },
      [
        'Job send of queue mail is being run by worker w1: attempt 1 of 3, since 5 s.',
        ONE,
        'Next: it ends, or is timed out at 2030-01-01 12:14:55 UTC, in 15 min.',
      ],
    ],
    [
      'that is asked to stop',
      {
        job: { state: 'active', attempt: 1, claimedAt: NOW, cancelRequested: true, reason: 'not needed' },
        running: { worker: 'w1', leaseEndsAt: NOW + SECOND, ended: false },
      },
      [
        'Job send of queue mail is being run by worker w1: attempt 1 of 3, since 0 s.',
        ONE,
        'Next: it is cancelled, as asked (not needed); its worker hears of it within seconds.',
      ],
    ],
    [
      'whose worker is silent',
      {
        job: { state: 'active', attempt: 2, lost: 1, claimedAt: NOW - MINUTE },
        running: { worker: 'w1', leaseEndsAt: NOW - 4 * SECOND, ended: false },
      },
      [
        'Job send of queue mail is being run by worker w1: attempt 2 of 3, since 1 min.',
        'That worker has not shown life since its lease ended 4 s ago: recovery takes the job over within seconds.',
        'It may have 3 attempts, says the default: 2 are made, 1 left.',
        'Its worker died once while it ran; after 3 times it is buried as poison.',
        'Next: recovery decides what becomes of it, as after any failure.',
      ],
    ],
    [
      'that completed',
      { job: { state: 'completed', attempt: 2, finishedAt: NOW - MINUTE, redrives: 1 }, failure: busy },
      ['Job send of queue mail completed 1 min ago, on attempt 2.', FAILED, 'It came back from the dead once.'],
    ],
    [
      'that was cancelled',
      { job: { state: 'cancelled', finishedAt: NOW - MINUTE, reason: 'not needed' } },
      ['Job send of queue mail was cancelled 1 min ago: not needed.'],
    ],
    [
      'that died',
      {
        job: { state: 'dead', attempt: 3, finishedAt: NOW - MINUTE, reason: 'transient: attempt 3 of 3' },
        failure: { ...busy, number: 3, outcome: 'timed_out' },
        deadLetter: { status: 'pending', assignedTo: 'bob' },
      },
      [
        'Job send of queue mail died 1 min ago: transient: attempt 3 of 3.',
        'Attempt 3 took too long 2 s ago: "the mail server is busy"; that is transient, because HTTP status 503.',
        'Next: a person decides; it does not run again by itself, and is assigned to bob.',
      ],
    ],
    [
      'that died and was closed',
      {
        job: { state: 'dead', attempt: 3, finishedAt: NOW - MINUTE, reason: 'r' },
        deadLetter: { status: 'permanently_failed', resolution: 'nobody needs it' },
      },
      ['Job send of queue mail died 1 min ago: r. It was closed for good: nobody needs it.'],
    ],
  ])('%s', (_what, change, sentences) => {
    expect(explain(evidence(change)).sentences).toEqual(sentences)
  })

  it('is explained in whole sentences, whatever is known of it', () => {
    const any = fc.record({
      state: fc.constantFrom(...STATES),
      attempt: fc.nat(5),
      kind: fc.option(fc.constantFrom(...KINDS), { nil: undefined }),
      paused: fc.boolean(),
      workers: fc.nat(1),
      known: fc.boolean(),
      breaker: fc.option(fc.constantFrom('closed', 'open', 'half_open', 'isolated'), { nil: undefined }),
      free: fc.boolean(),
      rated: fc.boolean(),
      running: fc.boolean(),
    })
    fc.assert(
      fc.property(any, fact => {
        const finished = fact.state === 'completed' || fact.state === 'cancelled' || fact.state === 'dead'
        const failure = fact.kind && { ...busy, kind: fact.kind }
        const { sentences, next } = explain(
          evidence({
            job: { state: fact.state, attempt: fact.attempt, ...(finished && { finishedAt: NOW }) },
            ...(failure && { failure, last: failure }),
            ...(fact.paused && { paused: { by: 'ada', at: NOW } }),
            workers: fact.workers,
            known: fact.known,
            ...(fact.breaker && { breaker: { ...breaker, state: fact.breaker, free: fact.free } }),
            ...(fact.rated && { rateLimit: { name: 'limit', key: '' } }),
            ...(fact.running && { running: { worker: 'w1', leaseEndsAt: NOW, ended: true } }),
          }),
        )
        expect(sentences.length).toBeGreaterThan(0)
        for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z0-9].*[.?]$/s)
        expect(sentences.join(' ')).not.toMatch(/undefined|NaN|null|\.\./)
        expect(next.what === 'nothing').toBe(fact.state === 'completed' || fact.state === 'cancelled')
      }),
    )
  })
})

describe('an id that nobody knows', () => {
  const id = '01941f29-7c00-7000-8000-000000000000'

  it('says when it was made, and what may have become of it', () => {
    expect(explainUnknown(id, { now: NOW, madeAt: NOW - 40 * 86_400_000 })).toEqual([
      `There is no job ${id} in this ledger.`,
      'Its id was made 40 days ago.',
      expect.stringContaining('retention removed it'),
    ])
    expect(explainUnknown(id, { now: NOW, madeAt: NOW + 86_400_000 })).toHaveLength(2)
  })

  it('says who removed it, if the audit knows', () => {
    const removed = { by: 'ada', at: NOW - MINUTE, action: 'remove' }
    expect(explainUnknown(id, { now: NOW, removed })[1]).toBe(
      'The audit has an action on it: remove by ada, 1 min ago.',
    )
  })
})
