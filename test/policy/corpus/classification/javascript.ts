// What the language itself throws, and what is thrown when something is given up.

import { strictEqual } from 'node:assert'
import { setTimeout as sleep } from 'node:timers/promises'
import { runInNewContext } from 'node:vm'
import { PermanentError, RedriveError, TransientError } from '../../../../src/domain/errors.js'
import { caught, type Family, like, shape } from './shape.js'

const run = (code: string) => caught(() => runInNewContext(code, { structuredClone, URL, Buffer, AbortSignal }))

export const javascript: Family = {
  family: 'JavaScript',
  shapes: [
    shape('JSON cut short', 'permanent', () => caught(() => JSON.parse('{"a":'))),
    shape('JSON that is HTML', 'permanent', () => caught(() => JSON.parse('<!DOCTYPE html>'))),
    shape('a property of undefined', 'permanent', () => run('undefined.key')),
    shape('not a function', 'permanent', () => run('({}).run()')),
    shape('not defined', 'permanent', () => run('nothing')),
    shape('a wrong length', 'permanent', () => run('new Array(-1)')),
    shape('a wrong time', 'permanent', () => run('new Date(NaN).toISOString()')),
    shape('endless recursion', 'permanent', () => run('(function f() { f() })()')),
    shape('no memory for a buffer', 'system', () => run('new ArrayBuffer(2 ** 53 - 1)')),
    shape('not a number', 'permanent', () => run('BigInt("x")')),
    shape('a malformed URI', 'permanent', () => run('decodeURIComponent("%")')),
    shape('a malformed URL', 'validation', () => run('new URL("x")')),
    shape('a circle in JSON', 'permanent', () => run('const a = {}; a.a = a; JSON.stringify(a)')),
    shape('a function that cannot be copied', 'permanent', () => run('structuredClone(() => 1)')),
    shape('an assertion', 'permanent', () => caught(() => strictEqual(1, 2))),
    shape('all promises rejected', 'transient', () =>
      caught(() => Promise.any([Promise.reject(new Error('a')), Promise.reject(new Error('b'))])),
    ),
    shape('all promises rejected for good', 'permanent', () =>
      caught(() => Promise.any([Promise.reject(new TypeError('a')), Promise.reject(new RangeError('b'))])),
    ),

    shape('AbortSignal.abort', 'transient', () => AbortSignal.abort().reason),
    shape(
      'AbortSignal.timeout',
      'transient',
      () =>
        new Promise(done => {
          const signal = AbortSignal.timeout(5)
          signal.addEventListener('abort', () => done(signal.reason))
        }),
    ),
    shape('a wait aborted', 'transient', () => caught(() => sleep(1000, null, { signal: AbortSignal.abort() }))),
    shape('a wait aborted for a reason that cannot heal', 'permanent', () =>
      caught(() => sleep(1000, null, { signal: AbortSignal.abort(new PermanentError('the order was withdrawn')) })),
    ),
    shape('a wait aborted because somebody cancelled', 'permanent', () =>
      caught(() =>
        sleep(1000, null, { signal: AbortSignal.abort(new RedriveError('CANCEL_REQUESTED', 'cancelled by ada')) }),
      ),
    ),
    shape('p-timeout', 'transient', () => like('TimeoutError', 'Promise timed out after 50 milliseconds')),
    shape('p-retry: given up for good', 'permanent', () =>
      like('AbortError', 'no', { originalError: new TypeError('x') }),
    ),
    shape('opossum: breaker open', 'transient', () => like('Error', 'Breaker is open', { code: 'EOPENBREAKER' })),
    shape('opossum: took too long', 'network', () => like('Error', 'Timed out after 100ms', { code: 'ETIMEDOUT' })),
    shape('cockatiel: breaker open', 'transient', () =>
      like('BrokenCircuitError', 'Execution prevented because the circuit breaker is open'),
    ),
    shape(
      'quota of the storage',
      'system',
      () => new DOMException('The quota has been exceeded.', 'QuotaExceededError'),
    ),
    shape('Playwright: took too long', 'transient', () => like('TimeoutError', 'page.goto: Timeout 30000ms exceeded.')),
    shape('our own: said by its thrower', 'transient', () => new TransientError('invalid for now')),
  ],
}
