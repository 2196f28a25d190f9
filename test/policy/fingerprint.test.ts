// Same causes with different ids must not split; different causes must not merge.
import { describe, expect, it } from 'vitest'
import { type FailureLike, fingerprint } from '../../src/policy/fingerprint.js'

const failure = (override: Partial<FailureLike>): FailureLike => ({ type: 'Error', message: 'it failed', ...override })

const stack = (...frames: string[]) => ['Error: it failed', ...frames.map(frame => `    at ${frame}`)].join('\n')

describe('one cause, one fingerprint', () => {
  it.each<[string, FailureLike, FailureLike]>([
    ['another number', failure({ message: 'user 42 not found' }), failure({ message: 'user 1234567 not found' })],
    [
      'another object',
      failure({ message: "key 'in/a.png' is missing (job 3f2504e0-4f89-41d3-9a0c-0305e82c3301)" }),
      failure({ message: "key 'x y z' is missing (job 6ba7b810-9dad-11d1-80b4-00c04fd430c8)" }),
    ],
    [
      'another address of the same service',
      failure({ message: 'connect ECONNREFUSED 10.0.0.1:5432' }),
      failure({ message: 'connect ECONNREFUSED ::1:5432' }),
    ],
    [
      'another line after an edit, another folder after a deployment',
      failure({ stack: stack('resize (/srv/releases/41/dist/resize.js:10:5)') }),
      failure({ stack: stack('resize (/srv/releases/42/dist/resize.js:99:1)') }),
    ],
    [
      'another version of a library',
      failure({ stack: stack('send (/app/node_modules/a/x.js:1:1)', 'run (file:///app/src/run.ts:1:2)') }),
      failure({
        stack: stack('post (/app/node_modules/a/y.js:1:1)', 'async run (/app/src/run.ts:7:2)', 'node:internal/x:1:1'),
      }),
    ],
    [
      'more of the same members',
      failure({ causes: [{ type: 'Error', message: 'row 1' }] }),
      failure({
        causes: [
          { type: 'Error', message: 'row 1' },
          { type: 'Error', message: 'row 2' },
        ],
      }),
    ],
  ])('%s', (_, one, other) => {
    expect(fingerprint(one)).toBe(fingerprint(other))
  })
})

describe('two causes, two fingerprints', () => {
  it.each<[string, FailureLike, FailureLike]>([
    ['another type', failure({}), failure({ type: 'TypeError' })],
    ['another code', failure({ code: 'ECONNRESET' }), failure({ code: 'ENOTFOUND' })],
    ['another status', failure({ httpStatus: 500 }), failure({ httpStatus: 503 })],
    ['another status in the text', failure({ message: 'HTTP 500' }), failure({ message: 'HTTP 503' })],
    ['another exit code', failure({ message: 'ffmpeg: exit code 1' }), failure({ message: 'ffmpeg: exit code 137' })],
    ['another text', failure({ message: 'user not found' }), failure({ message: 'order not found' })],
    [
      'another column',
      failure({ message: 'column "a" does not exist' }),
      failure({ message: 'column "b" does not exist' }),
    ],
    [
      'another provider',
      failure({ message: 'No provider found for ITL.Core/ResourceGroup' }),
      failure({ message: 'No provider found for ITL.Core/Tenant' }),
    ],
    [
      'another place in the code',
      failure({ stack: stack('a (/x/a.js:1:1)') }),
      failure({ stack: stack('b (/x/a.js:1:1)') }),
    ],
    [
      'another cause under the same wrapper',
      failure({ causes: [{ type: 'Error', message: 'disk full' }] }),
      failure({ causes: [{ type: 'Error', message: 'out of memory' }] }),
    ],
    ['another service', failure({ service: 's3' }), failure({ service: 'mail' })],
  ])('%s', (_, one, other) => {
    expect(fingerprint(one)).not.toBe(fingerprint(other))
  })

  it('another job', () => {
    expect(fingerprint(failure({}), 'resize')).not.toBe(fingerprint(failure({}), 'mail'))
  })

  it('whatever the message pretends to be a frame', () => {
    const message = 'x\n    at evil (/a/b.js:1:1)'
    const one = failure({ message, stack: `Error: ${message}\n    at a (/x/a.js:1:1)` })
    const other = failure({ message, stack: `Error: ${message}\n    at b (/x/a.js:1:1)` })
    expect(fingerprint(one)).not.toBe(fingerprint(other))
  })
})

it('is short, versioned and stays the same over releases', () => {
  expect(fingerprint(failure({ code: 'E', service: 's3' }))).toBe('v1:28d2babd82dcca8a')
})

it('uses foreign frames where there are no others', () => {
  const one = failure({ stack: stack('a (node:internal/a:1:1)') })
  const other = failure({ stack: stack('b (node:internal/b:1:1)') })
  expect(fingerprint(one)).not.toBe(fingerprint(other))
})
