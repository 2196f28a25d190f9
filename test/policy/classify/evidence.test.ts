// What each source of evidence says about one error: a table for each.
import { runInNewContext } from 'node:vm'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  AuthenticationError,
  ERROR_CODES,
  type ErrorCode,
  PermanentError,
  RateLimitedError,
  RedriveError,
  TransientError,
} from '../../../src/domain/errors.js'
import type { Kind } from '../../../src/domain/failure.js'
import { classify } from '../../../src/policy/classify.js'

const error = (fields: object, message = 'it failed') => Object.assign(new Error(message), fields)
const kindOf = (thrown: unknown): Kind => classify(thrown).kind

const thrownBy = (act: () => unknown): unknown => {
  try {
    return act()
  } catch (thrown) {
    return thrown
  }
}

describe('evidence', () => {
  const tables: Record<string, [unknown, Kind][]> = {
    'our own errors': [
      [new TransientError('x'), 'transient'],
      [new RateLimitedError('x'), 'rate_limited'],
      [new PermanentError('timeout, try again'), 'permanent'],
      [new AuthenticationError('x', { cause: error({ status: 503 }) }), 'authentication'],
      [error({ kind: 'system' }), 'system'],
      [error({ kind: 'lost' }), 'transient'],
      [new RedriveError('PAYLOAD_INVALID', 'x'), 'validation'],
      [new RedriveError('TIMED_OUT', 'x'), 'transient'],
    ],
    'HTTP status': [
      ...[400, 413, 422].map((status): [unknown, Kind] => [error({ status }), 'validation']),
      ...[401, 403, 407].map((status): [unknown, Kind] => [error({ status }), 'authentication']),
      ...[301, 404, 409, 410, 444, 501].map((status): [unknown, Kind] => [error({ status }), 'permanent']),
      ...[408, 425, 500, 502, 503, 504, 529].map((status): [unknown, Kind] => [error({ status }), 'transient']),
      [error({ statusCode: 429 }), 'rate_limited'],
      [error({ response: { status: 429 } }), 'rate_limited'],
      [error({ response: { statusCode: '503' } }), 'transient'],
      [error({ output: { statusCode: 401 } }), 'authentication'],
      [error({ code: 404 }), 'permanent'],
      [error({ status: 200 }, 'forbidden'), 'authentication'],
      [error({ status: 403, headers: { 'retry-after': '5' } }), 'rate_limited'],
      [error({ status: 403, headers: { 'x-ratelimit-remaining': '0' } }), 'rate_limited'],
    ],
    'Node codes': [
      ...['ECONNRESET', 'ENOTFOUND', 'EAI_AGAIN', 'ETIMEDOUT', 'EPIPE', 'HPE_INVALID_CONSTANT'].map(
        (code): [unknown, Kind] => [error({ code }), 'network'],
      ),
      ...['ENOSPC', 'EMFILE', 'ENOMEM'].map((code): [unknown, Kind] => [error({ code }), 'system']),
      ...['ENOENT', 'EACCES', 'ERR_INVALID_ARG_TYPE'].map((code): [unknown, Kind] => [error({ code }), 'permanent']),
      [error({ code: 'EBUSY' }), 'transient'],
      [error({ code: 'CERT_HAS_EXPIRED' }), 'authentication'],
    ],
    'undici and fetch': [
      [error({ code: 'UND_ERR_CONNECT_TIMEOUT' }), 'network'],
      [error({ code: 'UND_ERR_INVALID_ARG' }), 'permanent'],
      [new TypeError('fetch failed'), 'network'],
      [new TypeError('fetch failed', { cause: error({ code: 'CERT_HAS_EXPIRED' }) }), 'authentication'],
      [new TypeError('Failed to parse URL', { cause: error({ code: 'ERR_INVALID_URL' }) }), 'validation'],
    ],
    'the AWS SDK': [
      [error({ name: 'ThrottlingException', $metadata: { httpStatusCode: 400 } }), 'rate_limited'],
      [error({ name: 'SlowDown', $metadata: { httpStatusCode: 503 } }), 'rate_limited'],
      [error({ name: 'NoSuchKey', $metadata: { httpStatusCode: 404 } }), 'permanent'],
      [error({ name: 'S3Error', code: 'NoSuchKey' }), 'permanent'],
      [error({ name: 'AccessDenied', $metadata: {} }), 'authentication'],
      [error({ name: 'ExpiredToken', $metadata: { httpStatusCode: 400 } }), 'authentication'],
      [error({ name: 'Odd', $metadata: { httpStatusCode: 400 }, $retryable: { throttling: true } }), 'rate_limited'],
      [error({ name: 'Odd', $metadata: { httpStatusCode: 400 }, $retryable: {} }), 'transient'],
      [error({ name: 'Odd', $metadata: { httpStatusCode: 500 } }), 'transient'],
      [error({ name: 'ValidationError', $fault: 'client' }), 'validation'],
    ],
    'Postgres, by SQLSTATE': (
      [
        ['08006', 'network'],
        ['22P02', 'validation'],
        ['23502', 'validation'],
        ['23505', 'permanent'],
        ['28P01', 'authentication'],
        ['40001', 'transient'],
        ['40P01', 'transient'],
        ['42P01', 'permanent'],
        ['42501', 'authentication'],
        ['53300', 'system'],
        ['55P03', 'transient'],
        ['57014', 'transient'],
        ['57P01', 'transient'],
        ['25006', 'transient'],
        ['XX000', 'system'],
      ] as const
    ).map(([code, kind]) => [error({ code, severity: 'ERROR' }), kind]),
    'AMQP replies': [
      [error({ code: 320 }, 'Connection closed: 320 (CONNECTION-FORCED) with message "shutdown"'), 'network'],
      [error({ code: 404, classId: 50, methodId: 10 }, 'Channel closed by server: 404 (NOT-FOUND)'), 'permanent'],
      [error({ code: 403 }, 'Handshake terminated by server: 403 (ACCESS-REFUSED)'), 'authentication'],
      [error({ code: 406, classId: 60, methodId: 80 }), 'permanent'],
      [error({ code: 503, classId: 1, methodId: 1 }), 'permanent'],
      [error({ code: 541 }, 'Connection closed: 541 (INTERNAL-ERROR)'), 'transient'],
      [error({ name: 'IllegalOperationError' }, 'Channel closed'), 'network'],
    ],
    'Redis replies': [
      ...['LOADING', 'BUSY', 'READONLY', 'MOVED', 'CLUSTERDOWN'].map((word): [unknown, Kind] => [
        error({ name: 'ReplyError' }, `${word} something about it`),
        'transient',
      ]),
      [error({ name: 'ReplyError' }, 'NOAUTH Authentication required.'), 'authentication'],
      [error({ name: 'ReplyError' }, 'WRONGPASS invalid username-password pair'), 'authentication'],
      [error({ name: 'ReplyError' }, "OOM command not allowed when used memory > 'maxmemory'."), 'system'],
      [error({ name: 'ReplyError' }, "ERR unknown command 'x'"), 'permanent'],
      [error({ name: 'ReplyError' }, 'ERR max number of clients reached'), 'system'],
      [error({ name: 'MaxRetriesPerRequestError' }), 'network'],
    ],
    'JS types': [
      [thrownBy(() => JSON.parse('{bad')), 'permanent'],
      [thrownBy(() => (undefined as unknown as { x: 1 }).x), 'permanent'],
      [thrownBy(() => [].length.toFixed(1e6)), 'permanent'],
      [new RangeError('Array buffer allocation failed'), 'system'],
      [new DOMException('The operation was aborted', 'AbortError'), 'transient'],
      [new DOMException('It took too long', 'TimeoutError'), 'transient'],
      [z.object({ a: z.string() }).safeParse({}).error, 'validation'],
      [error({ issues: [{ message: 'bad' }] }), 'validation'],
      [runInNewContext('new TypeError("x")'), 'permanent'],
    ],
    'the text': (
      [
        ['Service not available', 'transient'],
        ['Encoder is BUSY', 'transient'],
        ['Quota exceeded for project', 'rate_limited'],
        ['Rate limit reached', 'rate_limited'],
        ['403 Forbidden', 'authentication'],
        ['Unsupported codec', 'permanent'],
        ['Missing required field: name', 'validation'],
        ['Operation timed out after 30000ms', 'transient'],
        ['socket hang up', 'network'],
        ['No space left on device', 'system'],
        ['No provider found for ITL.Core/ResourceGroup', 'transient'],
        ['Request failed with status code 404', 'permanent'],
        ['HTTP 429', 'rate_limited'],
        ['failed: connect ECONNREFUSED 127.0.0.1:5432', 'network'],
        ['busybox exploded', 'transient'],
      ] as const
    ).map(([text, kind]) => [new Error(text), kind]),
    'things that are no errors': [
      ['access denied', 'authentication'],
      [{ status: 422 }, 'validation'],
      [{ message: 'forbidden' }, 'authentication'],
      [null, 'transient'],
      [undefined, 'transient'],
      [42, 'transient'],
      [Symbol('x'), 'transient'],
      [() => 1, 'transient'],
    ],
  }
  describe.each(Object.entries(tables))('%s', (_, rows) => {
    it.each(rows.map(([thrown, kind]) => [label(thrown), kind, thrown] as const))('%s → %s', (_, kind, thrown) => {
      expect(kindOf(thrown)).toBe(kind)
    })
  })

  it('says in words what it saw', () => {
    const because = (thrown: unknown) => classify(thrown).because
    expect(because(error({ status: 503 }))).toBe('HTTP status 503')
    expect(because(error({ code: 'ECONNRESET' }))).toBe('Node code ECONNRESET')
    expect(because(new Error('x', { cause: error({ status: 503 }) }))).toBe('HTTP status 503, in its cause')
    expect(because(new Error('all is busy'))).toBe('the text says "busy"')
    expect(because(new Error('hm'))).toBe('unknown error: tried again, since it may heal')
    expect(classify(new Error('hm'), { service: 's3' }).because).toContain('while calling s3')
  })

  it.each(Object.keys(ERROR_CODES) as ErrorCode[])('judges our own %s', code => {
    expect(classify(new RedriveError(code, 'forbidden')).because).toBe(`Redrive's own error ${code}`)
  })
})

function label(thrown: unknown): string {
  const { type, message, code, httpStatus } = classify(thrown)
  return [type, code, httpStatus, message.slice(0, 50).replaceAll('\n', ' ')].filter(Boolean).join(' ')
}
