// Fingerprints are remembered by what is left of a message without what stands by itself: whatever is one text then must be one
// text when it is normalised, or two causes would share a group.
//
// Seen to fail: with TELLING left out, on "status 0"; with ALONE without its look behind, on "order0.0.0.0:0"; with COLOUR left
// out, on a colour between ECONNREFUSED and a UUID.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { normalise } from '../../../src/policy/fingerprint/normalise.js'
import { withoutNumbers } from '../../../src/policy/fingerprint/numbers.js'
import { fingerprint } from '../../../src/policy/fingerprint.js'
import { APART } from '../corpus/grouping/apart.js'
import { JOIN } from '../corpus/grouping/join.js'

const MESSAGES = [...JOIN, ...APART].flatMap(({ one, other }) => [one.message, other.message])

it('messages that differ in a number, an address or a UUID are one', () => {
  expect(withoutNumbers('order 1001 was refused, item 7')).toBe(withoutNumbers('order 22 was refused, item 12345'))
  expect(withoutNumbers('7 of 9.')).toBe(withoutNumbers('70 of 90.'))
  expect(withoutNumbers('connect ECONNREFUSED 10.0.0.1:80')).toBe(withoutNumbers('connect ECONNREFUSED 10.0.0.22:5432'))
  expect(withoutNumbers('user 3f2504e0-4f89-41d3-9a0c-0305e82c3301 is gone')).toBe(
    withoutNumbers('user 9b1deb4d-3b7d-4bad-9bdd-2b0d7b3dcb6d is gone'),
  )
})

it.each(['status 404', 'exit code 1', 'the server responded with 503', 'http: 500', 'errno 13', 'sqlstate 23505'])(
  '%s says what happened',
  message => {
    expect(withoutNumbers(message)).toBe(message)
  },
)

it('nothing is remembered of a long one', () => {
  expect(withoutNumbers(`order 1 ${'x'.repeat(300)}`)).toBeUndefined()
})

describe('what is one without its numbers is one when normalised', () => {
  /** Every number of a text replaced by one that comes from `next`. */
  const renumbered = (text: string, next: () => string) => text.replace(/\d+/g, () => next())
  const sameAsWithout = (message: string) => {
    const alike = withoutNumbers(message)
    if (alike !== undefined) expect(normalise(alike)).toBe(normalise(message))
  }

  it.each(MESSAGES)('%s', message => {
    sameAsWithout(message)
    for (const number of ['0', '7', '42', '404', '503', '23505', '123456', '1700000000', '9'.repeat(20)])
      sameAsWithout(renumbered(message, () => number))
  })

  it('whatever stands around the numbers', () => {
    const word = fc.constantFrom(
      ...`order status code: exit with responded answered error Error: http HTTP: a= id=5 " ' ( ) [ ] { } < > , ; | : . "a 1" 'b
      ENOTFOUND ECONNREFUSED column "c Mon, Jan GMT bytes ms -1 +2 1.5 10:30 2024-01-02 =( ) # <q> <date> to: host localhost: \u001b[31m é \t`.split(
        /\s+/,
      ),
    )
    const number = fc.oneof(
      fc.nat().map(String),
      fc.constantFrom('404', '503', '1', '12345', '23505'),
      fc.ipV4(),
      fc.tuple(fc.ipV4(), fc.nat({ max: 65_535 })).map(address => address.join(':')),
      fc.uuid(),
      fc.constant('12345678-1234-1234-1234-123456789012'),
    )
    const gap = fc.constantFrom(' ', ' ', ' ', '  ', '', ',', ', ', '\n')
    const text = fc.array(fc.tuple(fc.oneof(word, number), gap), { maxLength: 14 }).map(parts => parts.flat().join(''))
    fc.assert(fc.property(text, sameAsWithout), { numRuns: 20_000 })
  })
})

it('a remembered fingerprint is the one that would be made', () => {
  const stack = (message: string) => `Error: ${message}\n    at charge (file:///app/charge.js:3:9)`
  const of = (message: string, more = {}) =>
    fingerprint({ type: 'Error', message, stack: stack(message), ...more }, 'a')
  const one = of('order 1 was refused')
  expect(of('order 22 was refused')).toBe(one)
  expect(of('order 22 was lost')).not.toBe(one)
  expect(of('order 1 was refused', { code: 'E' })).not.toBe(one)
  expect(of('order 1 was refused', { httpStatus: 500 })).not.toBe(one)
  expect(of('order 1 was refused', { type: 'TypeError' })).not.toBe(one)
  expect(of('order 1 was refused', { causes: [{ type: 'Error', message: 'x' }] })).not.toBe(one)
  expect(of('order 1 was refused', { stack: 'Error: order 1 was refused' })).not.toBe(one)
  expect(
    fingerprint({ type: 'Error', message: 'order 1 was refused', stack: stack('order 1 was refused') }, 'b'),
  ).not.toBe(one)
  expect(of('status 404')).not.toBe(of('status 503'))
})
