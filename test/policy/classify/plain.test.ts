// Errors with nothing but a message are read and judged in a shorter way: what comes of it is the same.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ByMessage, isPlain } from '../../../src/policy/classify/plain.js'
import { classify } from '../../../src/policy/classify.js'
import { text } from '../corpus/classification/text.js'

const CLASSES = [Error, TypeError, RangeError, ReferenceError, SyntaxError, EvalError, URIError]
const WEAK = ['fetch failed', 'terminated', 'This operation was aborted', 'Invalid array buffer allocation failed']

/** The same error, with something besides that says nothing: it is read and judged in full. */
function inFull(error: Error, Class: (typeof CLASSES)[number] = Error): Error {
  const { message, stack, name } = error
  return Object.assign(new Class(message), { stack, unrelated: true }, name !== Class.name && { name })
}

describe('errors with nothing but a message', () => {
  it('are judged as in full, the first time and every time', () => {
    const messages = fc.oneof(fc.constantFrom(...text.shapes.map(({ name }) => name), ...WEAK), fc.string())
    fc.assert(
      fc.property(fc.constantFrom(...CLASSES), messages, (Class, message) => {
        const error = new Class(message)
        const full = inFull(error, Class)
        expect([isPlain(error), isPlain(full)]).toEqual([true, false])
        const expected = classify(full)
        expect(classify(error)).toEqual(expected)
        expect(classify(error)).toEqual(expected)
      }),
    )
  })

  it('may be given a name', () => {
    const named = Object.assign(new Error('it took too long'), { name: 'TimeoutError' })
    expect(isPlain(named)).toBe(true)
    expect(classify(named)).toEqual(classify(inFull(named)))
    expect(classify(named).kind).not.toBe(classify(Object.assign(new Error('x'), { name: 'ValidationError' })).kind)
  })

  it('are not those with anything else to say', () => {
    class Answered extends Error {
      get status() {
        return 404
      }
    }
    const unlisted = new Proxy(new Error('x'), {
      get: (error, key) => (key === 'code' ? 'ECONNRESET' : Reflect.get(error, key)),
    })
    const others: unknown[] = [
      new Answered('x'),
      new Error('x', { cause: undefined }),
      new AggregateError([], 'x'),
      Object.assign(new Error('x'), { code: 'ECONNRESET' }),
      Object.assign(new Error('x'), { [Symbol('status')]: 500 }),
      Object.setPrototypeOf(new Error('x'), null),
      { message: 'x', stack: 'Error: x' },
      new Proxy(new Error('x'), { getPrototypeOf: () => Array.prototype }),
      unlisted,
      'x',
      null,
      undefined,
    ]
    expect(others.filter(isPlain)).toEqual([])
    expect(classify(new Answered('x')).httpStatus).toBe(404)
    expect(classify(unlisted).kind).toBe('network')
  })

  it('are remembered by type and message, a thousand of them, if they are short', () => {
    const known = new ByMessage<number>()
    let worked = 0
    const ask = (type: string, message: string) => known.of(type, message, () => ++worked)
    expect([ask('Error', 'a'), ask('Error', 'a'), ask('TypeError', 'a'), ask('Error', 'b')]).toEqual([1, 1, 2, 3])
    for (let nth = 0; nth < 1_000; nth += 1) ask('Error', `number ${nth}`)
    expect(worked).toBe(1_003)
    expect(ask('Error', 'a'), 'forgotten').toBe(1_004)
    const long = 'x'.repeat(301)
    expect([ask('Error', long), ask('Error', long)]).toEqual([1_005, 1_006])
  })
})
