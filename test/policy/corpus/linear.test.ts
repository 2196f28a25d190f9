// pitfall 23: a fingerprint's regex hangs on a long message. Our rule: no message, stack or cause makes fingerprint or
// classification slow; the work grows no faster than the input, and what comes out is short. Counted, not timed
// (work.ts).
//
// Seen to fail: with a search for a closing quote repeated after it failed; with a pattern that has `\w*[\w.-]*`.
import fc from 'fast-check'
import { analyse } from 'scslre'
import { describe, expect, it } from 'vitest'
import { LIMITS } from '../../../src/domain/limits.js'
import { classify } from '../../../src/policy/classify.js'
import { placeOf } from '../../../src/policy/fingerprint/frames.js'
import { normalise, withoutInstances } from '../../../src/policy/fingerprint/normalise.js'
import { fingerprint } from '../../../src/policy/fingerprint.js'
import { APART } from './grouping/apart.js'
import { JOIN } from './grouping/join.js'
import { workOf } from './work.js'

const topFrames = (stack: string, message: string) => placeOf(stack, message).frames

/** What the scanners stumble over: openings without an end, ends without an opening, almost numbers, almost ids. */
const UNITS =
  `' " \` “ « 'a "a" "a": \\" @ a@ a@. : :: . .. / // - -- _ 0 0. a1 1a # <q> < > 1, a= = =( (a)= [ { \\ e E1
  0x 1e- %41 ff: -a0b1c2 arn: Jan Mon, GMT code: status= eyJ C:\\ localhost: to:1 \u001b[ \u001b[31m é 😀 \t \n`
    .split(/ +|\n +/)
    .concat([
      ' ',
      '\n',
      "'a ",
      ' "',
      '# ',
      '1 ',
      'a ',
      ' must be ',
      'Mon, 1 Jan ',
      '# Jan ',
      '<date> ',
      '=(a',
      'busy',
      'a b',
    ])

const filled = (unit: string, chars: number) => unit.repeat(Math.ceil(chars / unit.length)).slice(0, chars)
const stackOf = (text: string) => `Error: x\n    at f (${text.slice(0, 900)}:1:1)\n    at ${text}\n${text}`

/** Steps for each character, at most; a little above what the worst of the inputs takes. */
const NORMALISING = 100
const FRAMING = 30
const CLASSIFYING = 400

const hostile = fc
  .array(fc.oneof(fc.constantFrom(...UNITS), fc.string({ unit: 'binary', maxLength: 5 })), { maxLength: 200 })
  .map(parts => parts.join(''))
const repeated = fc
  .array(fc.constantFrom(...UNITS), { minLength: 1, maxLength: 4 })
  .map(parts => filled(parts.join(''), LIMITS.messageChars))

describe('twice the text is twice the work, and no more', () => {
  const growth = (act: (text: string) => unknown, unit: string) => {
    const [small, large] = [4_096, 16_384].map(chars => workOf(() => act(filled(unit, chars))).steps) as [
      number,
      number,
    ]
    return large / small / 4
  }

  it.each(UNITS)('%j, again and again', unit => {
    expect(growth(withoutInstances, unit)).toBeLessThan(1.1)
    expect(growth(text => topFrames(stackOf(text), ''), unit)).toBeLessThan(1.1)
    expect(growth(text => topFrames(text, text.slice(0, 2_000)), unit)).toBeLessThan(1.1)
  })

  it('up to the cap, however the hostile parts are mixed', () => {
    fc.assert(
      fc.property(fc.oneof(hostile, repeated), text => {
        const bound = (perCharacter: number) => perCharacter * (text.length + 20)
        expect(workOf(() => normalise(text)).steps).toBeLessThan(bound(NORMALISING))
        expect(workOf(() => topFrames(stackOf(text), text)).steps).toBeLessThan(bound(FRAMING))
        expect(workOf(() => classify(text)).steps).toBeLessThan(bound(CLASSIFYING))
      }),
    )
  })

  it('and beyond the cap there is no more work', () => {
    for (const unit of UNITS) {
      const [capped, huge] = [2 * LIMITS.messageChars, 50 * LIMITS.messageChars].map(chars => filled(unit, chars))
      const extra = workOf(() => normalise(huge ?? '')).steps - workOf(() => normalise(capped ?? '')).steps
      expect(extra).toBe(0)
    }
  })
})

it('a quadratic scan would be noticed', () => {
  const quadratic = (text: string) => {
    for (let at = 0; at < text.length; at++) if (text.charAt(at) === "'") text.indexOf('"', at)
  }
  const [small, large] = [1_000, 4_000].map(chars => workOf(() => quadratic("'".repeat(chars))).steps) as [
    number,
    number,
  ]
  expect(large / small / 4).toBeGreaterThan(3)
})

it('no pattern in use can backtrack beyond its input', () => {
  const { patterns } = workOf(() => {
    for (const { one, other } of [...JOIN, ...APART]) {
      for (const { message, stack = '' } of [one, other]) {
        classify(
          Object.assign(new Error(message), { status: 400, cause: message, code: '0A000', severity: 'E', stack }),
        )
        classify(Object.assign(new Error(message), { name: 'TransactionCanceledException' }))
        classify(new Error(`Handshake terminated by server: ${message}`))
        fingerprint({ type: 'Error', message, stack })
      }
    }
  })
  const ours = [...patterns]
  expect(ours.length).toBeGreaterThan(40)
  const slow = ours.filter(pattern => analyse(pattern).reports.length > 0)
  expect(slow.map(String)).toEqual([])
  expect(analyse(/(?:a|a)+$/).reports).not.toEqual([])
})

describe('whatever failed', () => {
  const anything = fc.oneof(hostile, repeated, fc.string({ unit: 'binary' }), fc.lorem({ mode: 'sentences' }))
  const failure = fc.record(
    {
      type: anything,
      message: anything,
      code: anything,
      httpStatus: fc.integer(),
      service: anything,
      stack: anything.map(stackOf),
      causes: fc.array(fc.record({ type: anything, message: anything }), { maxLength: LIMITS.causes }),
    },
    { requiredKeys: ['type', 'message'] },
  )

  it('the fingerprint is short, versioned, and the same each time', () => {
    fc.assert(
      fc.property(failure, fc.option(anything, { nil: undefined }), (failed, job) => {
        const once = fingerprint(failed, job)
        expect(once).toMatch(/^v1:[0-9a-f]{16}$/)
        expect(fingerprint(structuredClone(failed), job)).toBe(once)
      }),
    )
  })

  it('the normalised message is short, and depends on nothing that went before', () => {
    fc.assert(
      fc.property(anything, anything, (text, another) => {
        const once = normalise(text)
        expect(once.length).toBeLessThanOrEqual(512)
        normalise(another)
        expect(normalise(text)).toBe(once)
      }),
    )
  })

  it('the stack gives at most three places', () => {
    fc.assert(
      fc.property(anything, anything, (stack, message) => {
        expect(topFrames(stackOf(stack), message).length).toBeLessThanOrEqual(3)
      }),
    )
  })
})
