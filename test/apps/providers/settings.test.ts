// Settings from the environment: what they mean, and one clear line for each that cannot be.
import { describe, expect, it } from 'vitest'
import { readSettings } from '../../../apps/providers/settings.js'

describe('settings of the provider worker', () => {
  it('have defaults', () => {
    expect(readSettings({})).toEqual({
      retryDelays: { defaultMs: 5_000, byOperationMs: { create: 10_000, get: 2_000, delete: 5_000 } },
      attemptsByOperation: {},
      timeoutMs: 300_000,
      concurrency: 10,
      triage: true,
      modules: [],
      rabbitmq: undefined,
    })
  })

  it('are read', () => {
    const env = {
      RETRY_DELAY_SECONDS: '7',
      PROVIDER_RETRY_DELAYS: 'create=0.5, explode=60',
      PROVIDER_RETRY_ATTEMPTS: 'create=6',
      PROVIDER_TIMEOUT_SECONDS: '9',
      PROVIDER_CONCURRENCY: '3',
      PROVIDER_TRIAGE: 'off',
      PROVIDER_MODULES: './a.ts, ./b.ts',
      AMQP_URL: 'amqp://there',
      PROVIDER_AMQP_PREFIX: 'test.',
    }
    expect(readSettings(env)).toEqual({
      retryDelays: { defaultMs: 7_000, byOperationMs: { create: 500, get: 2_000, delete: 5_000, explode: 60_000 } },
      attemptsByOperation: { create: 6 },
      timeoutMs: 9_000,
      concurrency: 3,
      triage: false,
      modules: ['./a.ts', './b.ts'],
      rabbitmq: { url: 'amqp://there', prefix: 'test.', mirror: 'test.provider.jobs.dlq' },
    })
  })

  it.each([
    ['RETRY_DELAY_SECONDS', '-1', 'RETRY_DELAY_SECONDS is "-1"; it must be a number from 0 to 86400'],
    ['PROVIDER_RETRY_DELAYS', 'create', 'PROVIDER_RETRY_DELAYS is "create"; it must be a list such as create=10,get=2'],
    ['PROVIDER_RETRY_DELAYS', 'a b=1', 'The name of an operation is "a b"; it must be a word'],
    [
      'PROVIDER_RETRY_DELAYS',
      'get=soon',
      'PROVIDER_RETRY_DELAYS of get is "soon"; it must be a number from 0 to 86400',
    ],
    ['PROVIDER_RETRY_ATTEMPTS', 'get=1.5', 'PROVIDER_RETRY_ATTEMPTS of get is "1.5"; it must be a whole number'],
    ['PROVIDER_CONCURRENCY', '0', 'PROVIDER_CONCURRENCY is "0"; it must be a number from 1 to 10000'],
    ['PROVIDER_TRIAGE', 'maybe', 'PROVIDER_TRIAGE is "maybe"; it must be on or off'],
  ])('%s cannot be %j', (name, value, message) => {
    expect(() => readSettings({ [name]: value })).toThrow(message)
  })
})
