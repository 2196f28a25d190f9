// A bad setting stops the start with one line that names it, what it was and what it may be.
import { describe, expect, it } from 'vitest'
import { defineJob, openRedrive, type RedriveOptions, snooze } from '../../src/index.js'
import { readSettings } from '../../src/settings.js'

const oneLine = (message: string) => ({ code: 'SETTING_INVALID', message })

describe('an environment variable', () => {
  it.each([
    ['MAX_RETRY_ATTEMPTS', '0', 'MAX_RETRY_ATTEMPTS is "0"; it must be a number from 1 to 1000'],
    ['MAX_RETRY_ATTEMPTS', 'many', 'MAX_RETRY_ATTEMPTS is "many"; it must be a number from 1 to 1000'],
    ['MAX_RETRY_ATTEMPTS', '2.5', 'MAX_RETRY_ATTEMPTS is 2.5; it must be a whole number'],
    ['MAX_RETRY_ATTEMPTS', ' ', 'MAX_RETRY_ATTEMPTS is " "; it must be a number from 1 to 1000'],
    ['RETRY_DELAY_SECONDS', '-1', 'RETRY_DELAY_SECONDS is "-1"; it must be a number from 0 to 86400'],
    ['RETRY_DELAY_SECONDS', '5s', 'RETRY_DELAY_SECONDS is "5s"; it must be a number from 0 to 86400'],
    ['RETRY_DELAY_SECONDS', ' ', 'RETRY_DELAY_SECONDS is " "; it must be a number from 0 to 86400'],
    ['RETRY_DELAY_SECONDS', '0x10', 'RETRY_DELAY_SECONDS is "0x10"; it must be a number from 0 to 86400'],
    ['RECOVERY_INTERVAL_SECONDS', '0', 'RECOVERY_INTERVAL_SECONDS is "0"; it must be a number from 1 to 86400'],
    ['RECOVERY_INTERVAL_SECONDS', '1e9', 'RECOVERY_INTERVAL_SECONDS is "1e9"; it must be a number from 1 to 86400'],
    ['LOG_LEVEL', 'loud', 'LOG_LEVEL is "loud"; it must be one of debug, info, warn, error, silent'],
    [
      'REDRIVE_SCHEMA',
      'Robert"; DROP',
      'The schema name (REDRIVE_SCHEMA) is "Robert\\"; DROP"; it must be a-z, 0-9 and _, not starting with a digit or pg_, at most 40',
    ],
  ])('%s=%s', async (name, value, message) => {
    const opening = openRedrive({ database: ':memory:', env: { [name]: value } })
    await expect(opening).rejects.toMatchObject(oneLine(message))
  })

  it('that is empty counts as not set', () => {
    const empty = {
      MAX_RETRY_ATTEMPTS: '',
      RETRY_DELAY_SECONDS: '',
      REDRIVE_DATA: '',
      REDRIVE_SCHEMA: '',
      LOG_LEVEL: '',
    }
    expect(readSettings(empty)).toEqual(readSettings({}))
  })

  it('says what it says: attempts, delay, interval, folder, schema, level', () => {
    const env = {
      MAX_RETRY_ATTEMPTS: '7',
      RETRY_DELAY_SECONDS: '90',
      RECOVERY_INTERVAL_SECONDS: '1.5',
      REDRIVE_DATA: '/data',
      REDRIVE_SCHEMA: 'jobs',
      LOG_LEVEL: 'debug',
    }
    expect(readSettings(env)).toEqual({
      folder: '/data',
      schema: 'jobs',
      policy: { attempts: 7, backoff: { type: 'exponential', initialMs: 90_000, factor: 3 }, maxMs: 90_000 },
      recoveryIntervalMs: 1_500,
      logLevel: 'debug',
    })
  })
})

describe('an option of openRedrive', () => {
  it.each<[RedriveOptions, RegExp]>([
    [{ schema: 'No' }, /^The schema name \(REDRIVE_SCHEMA\) is "No"; it must be/],
    [{ poolSize: 0 }, /^poolSize is 0; it must be a whole number from 2 to 1000$/],
    [{ statementTimeoutMs: 1 }, /^statementTimeoutMs is 1; it must be a whole number from 100 to 3600000$/],
    [{ retry: { attempts: 0 } }, /^retry.attempts is 0; it must be a whole number from 1 to 1000$/],
    [{ leaseMs: 10 }, /^leaseMs is 10; it must be a whole number from 300 to 3600000$/],
    [{ pollMs: 1.5 }, /^pollMs is 1.5; it must be a whole number from 10 to 60000$/],
    [{ recoveryIntervalMs: 0 }, /^recoveryIntervalMs is 0; it must be a whole number from 100 to 86400000$/],
    [{ retention: { finishedDays: -1 } }, /^retention.finishedDays is -1; it must be a whole number from 0 to 36500$/],
    [{ retention: { resolvedDeadLetterDays: 0.5 } }, /^retention.resolvedDeadLetterDays is 0.5; it must be/],
    [{ database: 7 as never }, /^database is "number"; it must be a postgres:\/\/ URL/],
  ])('%o', async (options, message) => {
    const opening = openRedrive({ database: ':memory:', env: {}, ...options })
    await expect(opening).rejects.toMatchObject({ code: 'SETTING_INVALID', message: expect.stringMatching(message) })
  })
})

describe('a job definition', () => {
  it.each<[object, RegExp]>([
    [{ name: '' }, /^A job name is ""; it must be 1 to 200 characters without control characters$/],
    [{ name: 'a\nb' }, /^A job name is "a\\nb"/],
    [{ name: '\ud800' }, /^A job name is/],
    [{ name: 'x'.repeat(201) }, /^A job name is "x{100}"/],
    [{ name: 7 }, /^A job name is 7/],
    [{ name: 'a', queue: '' }, /^The queue of job a is ""/],
    [{ name: 'a', service: '\0' }, /^The service of job a is/],
    [{ name: 'a', priority: 11 }, /^The priority of job a is 11; it must be a whole number from 0 to 10$/],
    [{ name: 'a', concurrency: 0 }, /^The concurrency of job a is 0; it must be a whole number of at least 1$/],
    [{ name: 'a', schema: {} }, /^The schema of job a is "object"; it must be a Standard Schema validator$/],
    [{ name: 'a', handler: 'later' }, /^The handler of job a is "string"; it must be a function$/],
    [{ name: 'a', timeoutMs: 0 }, /^retry of job a.timeoutMs is 0/],
    [{ name: 'a', retry: { tries: 3 } }, /^A key of retry of job a is "tries"; it must be one of attempts/],
  ])('%o', (options, message) => {
    expect(() => defineJob(options as { name: string })).toThrow(message)
  })

  it('of a snooze that is no time', () => {
    for (const wrong of [-1, Number.NaN, '100', 1n, null]) expect(() => snooze(wrong as number)).toThrow(/^A snooze is/)
  })
})
