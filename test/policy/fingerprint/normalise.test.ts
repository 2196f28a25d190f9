// What is replaced, what is kept, and that no message makes it slow.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { placeOf } from '../../../src/policy/fingerprint/frames.js'
import { normalise, withoutInstances } from '../../../src/policy/fingerprint/normalise.js'

const topFrames = (stack: string, message: string) => placeOf(stack, message).frames

const MESSAGES: [string, string][] = [
  ['user 42 not found', 'user # not found'],
  ['took 1.5s, limit -3', 'took #, limit #'],
  ['1,234,567 rows', '# rows'],
  ['ids [1, 2, 3] missing', 'ids [#] missing'],
  ['job 3f2504e0-4f89-41d3-9a0c-0305e82c3301 died', 'job # died'],
  ['job-4821 died', 'job-# died'],
  ['commit 9fceb02d0ae598e9 is gone', 'commit # is gone'],
  ['pointer 0x7ffd5e8c', 'pointer #'],
  ['customer cus_9s6XKzkNRiz8i3', 'customer #'],
  ['session V1StGXR8_Z5jdHi6B-myT', 'session #'],
  ['mail to ann@example.org bounced', 'mail to <email> bounced'],
  ['GET https://a.example/x?y=1 failed.', 'GET <url> failed.'],
  ['getaddrinfo ENOTFOUND db', 'getaddrinfo ENOTFOUND <host>'],
  ['connect ECONNREFUSED 127.0.0.1:5432', 'connect ECONNREFUSED <host>'],
  ['connect ECONNREFUSED ::1:5432', 'connect ECONNREFUSED <host>'],
  ['no answer from [fe80::1]:80', 'no answer from <host>'],
  ['no answer from api.example.com', 'no answer from <host>'],
  ["ENOENT: no such file, open '/tmp/a b'", 'ENOENT: no such file, open <q>'],
  ['open /var/data/x failed', 'open <path> failed'],
  ['open C:\\data\\x failed', 'open <path> failed'],
  ['in/photo.png is broken', '<path> is broken'],
  ['User "ann" not found', 'User <q> not found'],
  ["can't open, doesn't exist", "can't open, doesn't exist"],
  ['column "email" does not exist', 'column "email" does not exist'],
  ["Cannot read properties of undefined (reading 'key')", "Cannot read properties of undefined (reading 'key')"],
  ['since 2024-01-02T03:04:05.678Z', 'since <date>'],
  ['since 2024-01-02 03:04:05', 'since <date>'],
  ['until Sun, 06 Nov 1994 08:49:37 GMT', 'until <date>'],
  ['status code 404', 'status code 404'],
  ['exit code=137', 'exit code=137'],
  ['order_id=77 rejected', 'order_id=# rejected'],
  ['type application/json unsupported', 'type application/json unsupported'],
  ['No provider found for ITL.Core/ResourceGroup', 'No provider found for ITL.Core/ResourceGroup'],
  ['a\n\n  b\tc', 'a b c'],
]

it.each(MESSAGES)('%s → %s', (message, expected) => {
  expect(normalise(message)).toBe(expected)
})

it('leaves what it made alone', () => {
  const sentence = fc.array(fc.constantFrom(...MESSAGES.map(([message]) => message)), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(sentence, parts => {
      const once = normalise(parts.join('; '))
      expect(normalise(once)).toBe(once)
    }),
  )
})

it('does not depend on which number or id it is', () => {
  fc.assert(
    fc.property(fc.nat(), fc.uuid(), fc.nat(), fc.uuid(), (a, idA, b, idB) => {
      expect(normalise(`row ${a} of ${idA}`)).toBe(normalise(`row ${b} of ${idB}`))
    }),
  )
})

describe('no message makes it slow', () => {
  const parts = [
    "'a ",
    '"',
    '`x',
    '@.',
    'a@.',
    ':',
    '::',
    '.',
    '/',
    '-',
    '0',
    'a1',
    '#',
    '# ',
    '<',
    '1,',
    'a=',
    '=',
    '\\',
    ' ',
    '<date> ',
  ]
  const hostile = [
    ...parts.map(part => part.repeat(100_000 / part.length)),
    `a@${'.'.repeat(50_000)}@`,
    `${':'.repeat(50_000)}g`,
  ]

  // 100 KB are read whole here, twelve times what a real message is capped to: a quadratic scan of it takes
  // billions of steps and does not end within the test's limit.
  it.each(hostile.map(text => [text.slice(0, 8), text]))('%j, again and again', (_, text) => {
    expect(withoutInstances(text).length).toBeLessThanOrEqual(2 * text.length)
    expect(topFrames(text, '')).toEqual([])
    expect(topFrames(`Error\n    at f [as ${text}`, '')).toEqual([])
    expect(topFrames(`Error\n    at f (${text}:1:1)`, '')).toEqual([])
  })

  it('and what is kept of one is short', () => {
    for (const text of hostile) expect(normalise(text).length).toBeLessThanOrEqual(512)
  })
})
