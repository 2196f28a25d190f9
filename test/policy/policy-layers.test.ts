// Who has a say in a job's policy, in which order, and which of them said what.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { DEFAULT_POLICY, type PolicyOverride } from '../../src/domain/policy.js'
import { custom, fixed } from '../../src/policy/backoff.js'
import {
  askedFor,
  layeredPolicy,
  type PolicyLayers,
  type PolicySource,
  parseStoredPolicy,
  policySources,
} from '../../src/policy/policy-layers.js'

const SAYERS = ['settings', 'definition', 'enqueue', 'queue', 'job'] as const

describe('the layers of a policy', () => {
  it.each(SAYERS.map((source, index) => [source, index] as const))('%s beats all before it', (source, index) => {
    const layers = Object.fromEntries(SAYERS.slice(0, index + 1).map((name, at) => [name, { attempts: at + 10 }]))
    expect(layeredPolicy(layers).attempts).toBe(index + 10)
    expect(policySources(layers).attempts).toBe(source)
  })

  it('are beaten by nothing but each other: what a call starts with gives way', () => {
    expect(layeredPolicy({}, { totalMs: 300_000 }).totalMs).toBe(300_000)
    expect(layeredPolicy({ settings: { totalMs: null } }, { totalMs: 300_000 }).totalMs).toBeNull()
  })

  it('tell for each setting, and for each kind, who said it last', () => {
    const layers: PolicyLayers = {
      settings: { attempts: 5, jitter: false },
      definition: { timeoutMs: 1_000, retryKinds: { permanent: true, network: false } },
      enqueue: askedFor(7),
      queue: { retryKinds: { network: true }, totalMs: null },
      job: { backoff: fixed({ delayMs: 300_000 }) },
    }
    expect(policySources(layers)).toEqual({
      attempts: 'enqueue',
      backoff: 'job',
      jitter: 'settings',
      minMs: 'default',
      maxMs: 'job',
      totalMs: 'queue',
      timeoutMs: 'definition',
      deadLetter: 'default',
      lostLimit: 'default',
      retryKinds: {
        transient: 'default',
        rate_limited: 'default',
        network: 'queue',
        system: 'default',
        permanent: 'definition',
        validation: 'default',
        authentication: 'default',
        lost: 'default',
      },
    })
    expect(askedFor(undefined)).toBeUndefined()
  })

  it('agree: what a source is said to have said is what holds', () => {
    const layer: fc.Arbitrary<PolicyOverride> = fc.record(
      {
        attempts: fc.integer({ min: 1, max: 9 }),
        jitter: fc.boolean(),
        totalMs: fc.option(fc.integer({ min: 1, max: 9 })),
        deadLetter: fc.boolean(),
        retryKinds: fc.record({ network: fc.boolean(), permanent: fc.boolean() }, { requiredKeys: [] }),
      },
      { requiredKeys: [] },
    )
    const any = fc.record(Object.fromEntries(SAYERS.map(name => [name, layer])), { requiredKeys: [] })
    fc.assert(
      fc.property(any, layers => {
        const policy = layeredPolicy(layers)
        const sources = policySources(layers)
        const of = (source: PolicySource) => (source === 'default' ? DEFAULT_POLICY : layers[source]) as PolicyOverride
        for (const key of ['attempts', 'jitter', 'totalMs', 'deadLetter'] as const)
          expect(policy[key]).toBe(of(sources[key])[key])
        for (const kind of ['network', 'permanent', 'lost'] as const)
          expect(policy.retryKinds[kind]).toBe(of(sources.retryKinds[kind]).retryKinds?.[kind])
      }),
    )
  })
})

describe('a policy that is to be stored', () => {
  it('is checked as any other', () => {
    expect(parseStoredPolicy({ attempts: 2, minMs: 5, maxMs: 5 }, 'p')).toEqual({ attempts: 2, minMs: 5, maxMs: 5 })
    expect(() => parseStoredPolicy({ attempts: 0 }, 'p')).toThrow('p.attempts is 0')
  })

  it.each<[string, unknown, string]>([
    [
      'a function',
      { backoff: custom(() => 1) },
      'p.backoff is "custom"; it must be one without a function: only code can hold one',
    ],
    ['a minimum over the maximum', { minMs: 10, maxMs: 5 }, 'p.minMs is 10; it must be at most maxMs (5)'],
  ])('is refused with %s', (_, policy, message) => {
    expect(() => parseStoredPolicy(policy, 'p')).toThrow(message)
  })
})
