// How well it goes, judged from measures alone: each sign, its bounds and its words, and how they make one answer.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type HealthMeasures, judged, judgeHealth, unreachable } from '../../src/policy/health.js'
import { DEFAULT_HEALTH_THRESHOLDS, parseHealthOptions } from '../../src/policy/health-thresholds.js'

const MINUTE = 60_000
const NOW = Date.UTC(2030, 0, 1)

const FINE: HealthMeasures = {
  now: NOW,
  since: NOW - 15 * MINUTE,
  ended: [],
  lanes: [],
  silentSessions: [],
  overdueMs: 0,
  openDeadLetters: 0,
  breakers: [],
  recoveryIntervalMs: 5 * MINUTE,
  alive: true,
  empty: false,
}
const mail = (completed: number, failed: number, dead = 0, queue = 'mail') => ({ queue, completed, failed, dead })
const lane = (waitedMs: number, change = {}) => ({
  queue: 'mail',
  name: 'send',
  waitedMs,
  paused: false,
  worked: true,
  known: true,
  service: null as string | null,
  ...change,
})
const judge = (change: Partial<HealthMeasures>) => judgeHealth({ ...FINE, ...change }, DEFAULT_HEALTH_THRESHOLDS)
const check = (name: string, change: Partial<HealthMeasures>) => {
  const found = judge(change).checks.find(candidate => candidate.name === name)
  return found && [found.status, found.reason]
}

describe('each sign', () => {
  it.each<[string, string, Partial<HealthMeasures>, string, string]>([
    ['nothing ended', 'success_rate', {}, 'healthy', 'No attempt ended in the last 15 min.'],
    [
      'nearly all succeed',
      'success_rate',
      { ended: [mail(1_203, 1)] },
      'healthy',
      '1 of 1,204 attempts failed in the last 15 min (less than 0.1 %).',
    ],
    [
      'a few attempts say nothing',
      'success_rate',
      { ended: [mail(0, 19)] },
      'healthy',
      '19 of 19 attempts failed in the last 15 min (100 %), too few to judge by.',
    ],
    [
      'a tenth fails',
      'success_rate',
      { ended: [mail(90, 10)] },
      'degraded',
      '10 of 100 attempts failed in the last 15 min (10 %).',
    ],
    [
      'half fails',
      'success_rate',
      { ended: [mail(50, 50), mail(10, 0, 0, 'images')] },
      'degraded',
      '50 of 110 attempts failed in the last 15 min (45.5 %), worst in queue mail: 50 of 100.',
    ],
    [
      'one queue of many fails altogether',
      'success_rate',
      { ended: [mail(0, 30), mail(10_000, 0, 0, 'images')] },
      'degraded',
      '30 of 10,030 attempts failed in the last 15 min (0.3 %), worst in queue mail: 30 of 30.',
    ],
    [
      'all fails',
      'success_rate',
      { ended: [mail(0, 30)] },
      'unhealthy',
      '30 of 30 attempts failed in the last 15 min (100 %).',
    ],
    ['nothing waits', 'backlog_age', {}, 'healthy', 'No job waits for a worker.'],
    [
      'a job waits a little',
      'backlog_age',
      { lanes: [lane(2_000), lane(1_000, { name: 'other' })] },
      'healthy',
      'The oldest waiting job, send in queue mail, has waited for 2 s.',
    ],
    [
      'a job waits long',
      'backlog_age',
      { lanes: [lane(MINUTE)] },
      'degraded',
      'The oldest waiting job, send in queue mail, has waited for 1 min.',
    ],
    [
      'a job waits too long',
      'backlog_age',
      { lanes: [lane(20 * MINUTE)] },
      'unhealthy',
      'The oldest waiting job, send in queue mail, has waited for 20 min.',
    ],
    [
      'paused on purpose',
      'backlog_age',
      { lanes: [lane(20 * MINUTE, { paused: true })] },
      'healthy',
      'No job waits for a worker. Jobs of 1 paused queue are not counted.',
    ],
    [
      'held by its breaker, which is a sign of its own',
      'backlog_age',
      {
        lanes: [lane(20 * MINUTE, { service: 's3' })],
        breakers: [{ service: 's3', state: 'open', sinceMs: 1, reason: 'r' }],
      },
      'healthy',
      'No job waits for a worker.',
    ],
    [
      'nobody promotes',
      'backlog_age',
      { lanes: [lane(1)], overdueMs: 2 * MINUTE },
      'degraded',
      'A delayed job or retry was due 2 min ago and nobody has put it in line.',
    ],
    [
      'nobody died',
      'dead_letters',
      { openDeadLetters: 1 },
      'healthy',
      'No job died in the last 15 min; 1 dead letter is open.',
    ],
    [
      'few died',
      'dead_letters',
      { ended: [mail(0, 4, 4)], openDeadLetters: 4 },
      'healthy',
      '4 jobs died in the last 15 min, 100 % of those that ended; 4 dead letters are open.',
    ],
    [
      'dead letters grow',
      'dead_letters',
      { ended: [mail(95, 5, 5), mail(100, 0, 0, 'images')], openDeadLetters: 10_000 },
      'degraded',
      '5 jobs died in the last 15 min, 2.5 % of those that ended, most in queue mail (5); 10,000 dead letters are open.',
    ],
    [
      'dead letters grow fast',
      'dead_letters',
      { ended: [mail(10, 20, 20)], openDeadLetters: 20 },
      'unhealthy',
      '20 jobs died in the last 15 min, 66.7 % of those that ended; 20 dead letters are open.',
    ],
    ['all breakers closed', 'breakers', {}, 'healthy', 'No breaker is open.'],
    [
      'a breaker is open',
      'breakers',
      { breakers: [{ service: 's3', state: 'open', sinceMs: 0, reason: '5 failures in a row.' }] },
      'degraded',
      'The breaker of s3 has been open for 0 s: 5 failures in a row.',
    ],
    [
      'breakers are open for long',
      'breakers',
      {
        breakers: [
          { service: 's3', state: 'half_open', sinceMs: MINUTE, reason: 'r' },
          { service: 'smtp', state: 'isolated', sinceMs: 11 * MINUTE, reason: 'ada: the bank called' },
        ],
      },
      'unhealthy',
      'The breaker of smtp has been isolated by a person for 11 min: ada: the bank called. So is s3.',
    ],
    ['all queues have workers', 'workers', {}, 'healthy', 'Every queue with waiting jobs has a worker.'],
    [
      'a deployment',
      'workers',
      { lanes: [lane(20_000, { worked: false })] },
      'healthy',
      'No worker takes jobs from queue mail; its oldest job has waited for 20 s.',
    ],
    [
      'no worker',
      'workers',
      { lanes: [lane(2 * MINUTE, { worked: false }), lane(1, { queue: 'images', worked: false })] },
      'degraded',
      'No worker takes jobs from queue mail, nor from images; its oldest job has waited for 2 min.',
    ],
    [
      'a job that no worker knows',
      'workers',
      { lanes: [lane(6 * MINUTE, { name: 'sned', known: false })] },
      'unhealthy',
      'No worker knows job sned of queue mail; its oldest job has waited for 6 min.',
    ],
    [
      'a worker that nobody rescues from',
      'workers',
      { silentSessions: [{ worker: 'w1', silentMs: 40_000 }] },
      'degraded',
      'Worker w1 lost its lease 40 s ago and nobody has taken over its jobs.',
    ],
    [
      'nothing to recover',
      'recovery',
      { alive: false },
      'healthy',
      'Nothing runs or will run, so nothing has to be recovered.',
    ],
    ['a first start', 'recovery', {}, 'healthy', 'Recovery has not run yet.'],
    ['recovery ran', 'recovery', { recovery: { startedMsAgo: MINUTE } }, 'healthy', 'Recovery last ran 1 min ago.'],
    [
      'recovery is overdue',
      'recovery',
      { recovery: { startedMsAgo: 10 * MINUTE } },
      'degraded',
      'Recovery last ran 10 min ago.',
    ],
    [
      'recovery stopped',
      'recovery',
      { recovery: { startedMsAgo: 31 * MINUTE } },
      'unhealthy',
      'Recovery last ran 31 min ago.',
    ],
    [
      'recovery fails',
      'recovery',
      { recovery: { startedMsAgo: MINUTE, error: 'no space left.' } },
      'degraded',
      'Recovery last ran 1 min ago and failed: no space left.',
    ],
  ])('%s: %s', (_what, name, change, status, reason) => {
    expect(check(name, change)).toEqual([status, reason])
  })
})

describe('the whole', () => {
  it('is healthy with nothing at all, and says that there is nothing yet', () => {
    expect(judge({ empty: true, alive: false })).toMatchObject({
      status: 'healthy',
      score: 1,
      reason: 'There is nothing yet: no job was ever seen.',
      successRate: null,
      at: new Date(NOW),
    })
    expect(judge({}).reason).toBe('All is well.')
  })

  it('is as bad as its worst sign, and tells what is wrong, the worst first', () => {
    const health = judge({
      ended: [mail(90, 10)],
      lanes: [lane(6 * MINUTE, { worked: false })],
      recovery: { startedMsAgo: 1 },
    })
    expect(health).toMatchObject({ status: 'unhealthy', successRate: 0.9 })
    expect(health.reason).toBe(
      'No worker takes jobs from queue mail; its oldest job has waited for 6 min. ' +
        '10 of 100 attempts failed in the last 15 min (10 %).',
    )
    expect(health.score).toBe(health.checks.find(({ name }) => name === 'workers')?.score)
  })

  it('is told also of a ledger that does not answer', () => {
    expect(unreachable(new Error('connect ECONNREFUSED.'), NOW)).toMatchObject({
      status: 'unhealthy',
      score: 0,
      reason: 'The ledger does not answer: connect ECONNREFUSED.',
      checks: [{ name: 'ledger' }],
    })
  })

  const bounds = fc
    .tuple(fc.double({ min: 0, max: 1e6, noNaN: true }), fc.double({ min: 0, max: 1e6, noNaN: true }))
    .map(([a, b]) => ({ degraded: Math.min(a, b), unhealthy: Math.max(a, b) }))
  const value = fc.double({ min: 0, max: 1e9, noNaN: true })

  it('has a score between 0 and 1 that tells the status, and never rises with a worse value', () => {
    fc.assert(
      fc.property(bounds, value, value, (limits, a, b) => {
        const [better, worse] = [judged(Math.min(a, b), limits), judged(Math.max(a, b), limits)]
        expect(worse.score).toBeLessThanOrEqual(better.score + 1e-9)
        for (const { status, score } of [better, worse]) {
          expect(score).toBeGreaterThanOrEqual(0)
          expect(score).toBeLessThanOrEqual(1)
          const least = { healthy: 0.8, degraded: 0.4, unhealthy: 0 }[status]
          expect(score).toBeGreaterThanOrEqual(least - 1e-9)
        }
      }),
      // Seen red: with the products formed before they are divided, bounds so small that they round.
      { examples: [[{ degraded: 2e-323, unhealthy: 1 }, 1.5e-323, 1.5e-323]], numRuns: 1_000 },
    )
  })
})

describe('thresholds', () => {
  it('are the defaults where nothing is said, setting by setting', () => {
    expect(parseHealthOptions({})).toEqual(DEFAULT_HEALTH_THRESHOLDS)
    expect(parseHealthOptions({ failureRate: { degraded: 0.2 }, minimumDead: 1 })).toEqual({
      ...DEFAULT_HEALTH_THRESHOLDS,
      failureRate: { degraded: 0.2, unhealthy: 0.5 },
      minimumDead: 1,
    })
  })

  it.each<[string, object, string]>([
    ['an unknown one', { failRate: {} }, 'A key of health is "failRate"; it must be one of windowMs, '],
    ['no number', { windowMs: '15m' }, 'health.windowMs is "15m"; it must be a number from 60000 to 7200000'],
    [
      'a share over 1',
      { deadShare: { unhealthy: 2 } },
      'health.deadShare.unhealthy is 2; it must be a number from 0 to 1',
    ],
    ['a number for two', { silentMs: 5 }, 'health.silentMs is 5; it must be an object with degraded and unhealthy'],
    [
      'bounds in the wrong order',
      { silentMs: { degraded: 600_000 } },
      'health.silentMs.unhealthy is 300000; it must be at least degraded (600000)',
    ],
  ])('are refused: %s', (_what, options, message) => {
    expect(() => parseHealthOptions(options)).toThrow(message)
  })
})
