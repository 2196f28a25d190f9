// Which policy holds for a job, and what a policy may say.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRedriveError } from '../../src/domain/errors.js'
import { DEFAULT_POLICY, type PolicyOverride } from '../../src/domain/policy.js'
import { custom, delays, exponential, fixed } from '../../src/policy/backoff.js'
import { effectivePolicy, parsePolicy, policyAsJson } from '../../src/policy/effective.js'

describe('the policy that holds', () => {
  it('is the default where nobody says anything', () => {
    expect(effectivePolicy()).toEqual(DEFAULT_POLICY)
    expect(effectivePolicy(undefined, {}, undefined)).toEqual(DEFAULT_POLICY)
  })

  it('takes each setting from the last one who says it', () => {
    const policy = effectivePolicy(
      { attempts: 5, timeoutMs: 1_000, jitter: false },
      { attempts: 7, lostLimit: 1 },
      { timeoutMs: 2_000 },
    )
    expect(policy).toEqual({ ...DEFAULT_POLICY, attempts: 7, timeoutMs: 2_000, jitter: false, lostLimit: 1 })
  })

  it('changes the treatment of the kinds that are named, and of no others', () => {
    const { retryKinds } = effectivePolicy(
      { retryKinds: { permanent: true, network: false } },
      { retryKinds: { network: true, transient: false } },
    )
    expect(retryKinds).toEqual({ ...DEFAULT_POLICY.retryKinds, permanent: true, transient: false })
  })

  it('does not cut a backoff that names its own longest delay by a maximum that nobody chose', () => {
    expect(effectivePolicy({ backoff: fixed({ delayMs: 300_000 }) }).maxMs).toBe(300_000)
    expect(effectivePolicy({ backoff: delays([5_000, 600_000]) }).maxMs).toBe(600_000)
    expect(effectivePolicy({ backoff: exponential({ initialMs: 1_000, maxMs: 30_000 }) }).maxMs).toBe(60_000)
  })

  it('keeps a maximum that somebody chose with the backoff, or after it', () => {
    expect(effectivePolicy({ backoff: fixed({ delayMs: 300_000 }), maxMs: 10_000 }).maxMs).toBe(10_000)
    expect(effectivePolicy({ backoff: fixed({ delayMs: 300_000 }) }, { maxMs: 10_000 }).maxMs).toBe(10_000)
  })

  it('is, setting by setting, the last override that has it: whatever the overrides are', () => {
    const any: fc.Arbitrary<PolicyOverride> = fc.record(
      {
        attempts: fc.integer({ min: 1, max: 1000 }),
        jitter: fc.boolean(),
        minMs: fc.nat(1e6),
        maxMs: fc.nat(1e6),
        totalMs: fc.option(fc.integer({ min: 1, max: 1e6 })),
        timeoutMs: fc.integer({ min: 1, max: 1e6 }),
        deadLetter: fc.boolean(),
        lostLimit: fc.integer({ min: 1, max: 100 }),
      },
      { requiredKeys: [] },
    )
    fc.assert(
      fc.property(fc.array(any, { maxLength: 5 }), overrides => {
        expect(effectivePolicy(...overrides)).toEqual(Object.assign({}, DEFAULT_POLICY, ...overrides))
      }),
    )
  })
})

describe('a policy as it is written', () => {
  it('is taken over as it is, without what is undefined', () => {
    const written = { attempts: 2, totalMs: null, retryKinds: { lost: false }, jitter: undefined }
    expect(parsePolicy(written, 'retry')).toEqual({ attempts: 2, totalMs: null, retryKinds: { lost: false } })
  })

  it('survives being stored, except for a function', () => {
    const policy = parsePolicy({ attempts: 4, backoff: exponential(), retryKinds: { lost: false } }, 'retry')
    expect(parsePolicy(policyAsJson(policy), 'stored')).toEqual(policy)
    const ofCode = parsePolicy({ backoff: custom(attempt => attempt) }, 'retry')
    expect(ofCode.backoff).toEqual({ type: 'custom', delayMs: expect.any(Function) })
    expect(parsePolicy(policyAsJson(ofCode), 'stored')).toEqual({ backoff: { type: 'custom' } })
  })

  it.each<[string, unknown, string]>([
    ['attempts of 0', { attempts: 0 }, 'retry.attempts is 0; it must be a whole number from 1 to 1000'],
    ['half an attempt', { attempts: 1.5 }, 'retry.attempts is 1.5; it must be a whole number from 1 to 1000'],
    ['attempts as text', { attempts: '3' }, 'retry.attempts is "3"; it must be a whole number from 1 to 1000'],
    ['too many attempts', { attempts: 1001 }, 'retry.attempts is 1001; it must be a whole number from 1 to 1000'],
    ['jitter as text', { jitter: 'yes' }, 'retry.jitter is "yes"; it must be true or false'],
    ['a negative minimum', { minMs: -1 }, 'retry.minMs is -1; it must be a whole number from 0 to 315360000000'],
    ['no maximum', { maxMs: Number.NaN }, 'retry.maxMs is NaN; it must be a whole number from 0 to 315360000000'],
    ['a total limit of 0', { totalMs: 0 }, 'retry.totalMs is 0; it must be a whole number from 1 to 315360000000'],
    ['no timeout', { timeoutMs: 0 }, 'retry.timeoutMs is 0; it must be a whole number from 1 to 2147483647'],
    [
      'a timeout that no timer can wait for',
      { timeoutMs: 2 ** 31 },
      'retry.timeoutMs is 2147483648; it must be a whole number from 1 to 2147483647',
    ],
    ['a number for dead letters', { deadLetter: 1 }, 'retry.deadLetter is 1; it must be true or false'],
    ['a loss limit of 0', { lostLimit: 0 }, 'retry.lostLimit is 0; it must be a whole number from 1 to 100'],
    ['kinds as a list', { retryKinds: 7 }, 'retry.retryKinds is 7; it must be an object of kinds'],
    [
      'an unknown kind',
      { retryKinds: { flaky: true } },
      'a key of retry.retryKinds is "flaky"; it must be one of transient, rate_limited, network, system, permanent, validation, authentication, lost',
    ],
    [
      'a kind that is neither on nor off',
      { retryKinds: { lost: 'no' } },
      'retry.retryKinds.lost is "no"; it must be true or false',
    ],
    [
      'an unknown backoff',
      { backoff: { type: 'fibonacci' } },
      'backoff type is "fibonacci"; it must be one of exponential, linear, fixed, immediate, delays, custom',
    ],
    [
      'a misspelt setting',
      { attemps: 3 },
      'A key of retry is "attemps"; it must be one of attempts, backoff, jitter, minMs, maxMs, totalMs, timeoutMs, retryKinds, deadLetter, lostLimit',
    ],
    [
      'no object at all',
      3,
      'retry is 3; it must be an object with any of attempts, backoff, jitter, minMs, maxMs, totalMs, timeoutMs, retryKinds, deadLetter, lostLimit',
    ],
  ])('is refused with %s, and the error says what may be', (_, written, message) => {
    const refused = (() => {
      try {
        parsePolicy(written, 'retry')
      } catch (error) {
        return error
      }
    })()
    expect(isRedriveError(refused, 'SETTING_INVALID') && refused.message).toBe(message)
  })

  it.each(['toString', 'constructor', '__proto__', 'hasOwnProperty'])(
    'is refused with a key that every object has: %s',
    key => {
      const written = JSON.parse(`{"${key}": {}}`)
      expect(() => parsePolicy(written, 'retry')).toThrow(/^A key of retry is/)
    },
  )
})
