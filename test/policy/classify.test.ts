// From anything thrown to a Failure: chains of causes, what the user says, and the strangest things. What a single
// error tells is in classify/evidence.test.ts.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { PermanentError } from '../../src/domain/errors.js'
import { isKind, type Kind } from '../../src/domain/failure.js'
import type { JobId } from '../../src/domain/ids.js'
import { LIMITS } from '../../src/domain/limits.js'
import { type Classifier, classify } from '../../src/policy/classify.js'

const error = (fields: object, message = 'it failed') => Object.assign(new Error(message), fields)
const kindOf = (thrown: unknown): Kind => classify(thrown).kind

describe('a chain of causes', () => {
  it('is judged by its best evidence: a code deep down beats a text on top', () => {
    expect(
      kindOf(new Error('invalid answer', { cause: new Error('x', { cause: error({ code: 'ECONNRESET' }) }) })),
    ).toBe('network')
  })

  it('is judged by its outermost error where the evidence is equal', () => {
    expect(kindOf(error({ status: 503, cause: error({ status: 404 }) }))).toBe('transient')
  })

  it('lists causes, types and codes, and takes status, code and wait from wherever they are', () => {
    const failure = classify(
      new Error('upload failed', {
        cause: error({ status: 503, code: 'E_X', headers: { 'retry-after': '3' } }, 'inner'),
      }),
    )
    expect(failure).toMatchObject({
      message: 'upload failed',
      causes: [{ type: 'Error', message: 'inner', code: 'E_X' }],
      httpStatus: 503,
      code: 'E_X',
      retryAfterMs: 3000,
    })
  })

  it('may run in a circle', () => {
    const a = error({}, 'a')
    const b = error({ cause: a }, 'b')
    Object.assign(a, { cause: b })
    expect(classify(a).causes.map(cause => cause.message)).toEqual(['b'])
  })

  it('is bounded', () => {
    let deep = new Error('root')
    for (let level = 0; level < 1000; level++) deep = new Error(`level ${level}`, { cause: deep })
    expect(classify(deep).causes).toHaveLength(LIMITS.causes)
  })
})

describe('an AggregateError', () => {
  it('can heal if any of its members can', () => {
    expect(kindOf(new AggregateError([error({ status: 404 }), error({ status: 429 })]))).toBe('rate_limited')
    expect(kindOf(new AggregateError([error({ status: 404 }), new Error('who knows')]))).toBe('transient')
  })

  it('cannot heal if none can', () => {
    expect(kindOf(new AggregateError([error({ status: 404 }), error({ status: 400 })]))).toBe('permanent')
  })

  it('speaks for itself when it carries a code, as a refused connection does', () => {
    const refused = Object.assign(new AggregateError([error({ status: 404 })]), { code: 'ECONNREFUSED' })
    expect(kindOf(refused)).toBe('network')
  })

  it('is bounded however many it holds', () => {
    expect(classify(new AggregateError(Array.from({ length: 5000 }, () => new Error('x')))).causes).toHaveLength(
      LIMITS.causes,
    )
  })
})

describe('the user is heard', () => {
  const teapot = error({ status: 418, code: 'E_TEA' }, 'Short and Stout')

  it.each([
    [{ type: 'Error' }],
    [{ code: 'E_TEA' }],
    [{ status: 418 }],
    [{ text: 'short AND' }],
    [{ status: 418, text: 'stout' }],
  ])('by a rule %o', match => {
    expect(classify(teapot, { rules: [{ match, kind: 'system' }] })).toMatchObject({ kind: 'system' })
    expect(classify(new Error('x', { cause: teapot }), { rules: [{ match, kind: 'system' }] }).kind).toBe('system')
  })

  it.each([[{}], [{ status: 418, text: 'thin' }], [{ text: 'short.*stout' }]])(
    'not by a rule that does not fit: %o',
    match => {
      expect(classify(teapot, { rules: [{ match, kind: 'system' }] }).kind).toBe('permanent')
    },
  )

  it('by a classifier, in a word or in full', () => {
    expect(classify(teapot, { classifier: () => 'network' }).kind).toBe('network')
    const full: Classifier = () => ({ kind: 'rate_limited', because: 'tea time', retryAfterMs: 5, service: 'kettle' })
    expect(classify(teapot, { classifier: full, service: 'other' })).toMatchObject({
      kind: 'rate_limited',
      because: 'tea time',
      retryAfterMs: 5,
      service: 'kettle',
    })
  })

  it('by a classifier that leaves the rest to us', () => {
    expect(classify(teapot, { classifier: () => undefined })).toMatchObject({
      kind: 'permanent',
      because: 'HTTP status 418',
    })
    expect(classify(teapot, { classifier: () => {} }).kind).toBe('permanent')
  })

  it('unless the classifier is broken: then it is ignored, and that is said', () => {
    const throws: Classifier = () => {
      throw new TypeError('oops')
    }
    const rejects = (async () => {
      throw new Error('async')
    }) as unknown as Classifier
    expect(classify(teapot, { classifier: throws })).toMatchObject({
      kind: 'permanent',
      because: 'HTTP status 418 (the classifier threw TypeError: oops, and was ignored)',
    })
    expect(classify(teapot, { classifier: rejects }).because).toContain('gave no kind')
    expect(classify(teapot, { classifier: (() => 'nonsense') as unknown as Classifier }).kind).toBe('permanent')
  })

  it('before all, by the error it throws', () => {
    const rules = [{ match: { type: 'PermanentError' }, kind: 'transient' }] as const
    expect(classify(new PermanentError('no'), { rules, classifier: () => 'network' }).kind).toBe('permanent')
  })

  it('sees the job in its classifier', () => {
    const job = { id: '0' as JobId, queue: 'q', name: 'resize', priority: 5, tenant: 'acme', service: 's3', attempt: 2 }
    const byTenant: Classifier = (_, context) => (context.job?.tenant === 'acme' ? 'permanent' : undefined)
    expect(classify(new Error('x'), { job, classifier: byTenant })).toMatchObject({ kind: 'permanent', service: 's3' })
  })
})

describe('whatever is thrown', () => {
  const hostile = new Proxy(new Error('x'), {
    get() {
      throw new Error('no reading')
    },
    getPrototypeOf() {
      throw new Error('no prototype')
    },
    ownKeys() {
      throw new Error('no keys')
    },
  })
  const { proxy: revoked, revoke } = Proxy.revocable({}, {})
  revoke()
  it.each<[string, unknown]>([
    ['a proxy that refuses all', hostile],
    ['a revoked proxy', revoked],
    ['an object without prototype', Object.create(null)],
    ['a frozen error', Object.freeze(error({ status: 503 }))],
    ['a getter that throws', Object.defineProperty(new Error('x'), 'message', { get: () => JSON.parse('{') })],
    [
      'an error whose fields are nonsense',
      error({ name: 5, code: {}, status: 'x', stack: 7, cause: 0, errors: 'none' }),
    ],
    ['a bigint', 10n],
  ])('%s becomes a failure', (_, thrown) => {
    const failure = classify(thrown)
    expect(isKind(failure.kind)).toBe(true)
    expect(failure.fingerprint).toMatch(/^v1:[0-9a-f]{16}$/)
    expect(() => JSON.stringify(failure)).not.toThrow()
  })

  it('is a failure that can be stored, for any value at all', () => {
    fc.assert(
      fc.property(fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true }), thrown => {
        expect(isKind(classify(thrown).kind)).toBe(true)
        expect(
          isKind(classify(Object.assign(new Error('x'), { cause: thrown, code: thrown, headers: thrown })).kind),
        ).toBe(true)
      }),
    )
  })

  it('an object shows its plain fields', () => {
    expect(classify({ reason: 'quota exceeded', nested: {} })).toMatchObject({
      type: 'Object',
      message: '{ reason: quota exceeded }',
      kind: 'rate_limited',
    })
  })

  it('a huge message is cut, and the stack keeps its frames', () => {
    const failure = classify(new Error('x'.repeat(1_000_000)))
    expect(failure.message.length).toBeLessThan(LIMITS.messageChars + 100)
    expect(failure.stack).toContain('classify.test')
    expect(failure.stack?.length).toBeLessThan(LIMITS.stackChars + 100)
  })

  it('half a character is not kept: Postgres would refuse it', () => {
    const failure = classify(new Error(`${'x'.repeat(LIMITS.messageChars - 1)}😀`))
    expect(failure.message).not.toMatch(/\p{Surrogate}/u)
  })

  it('keeps a class that does not name itself', () => {
    class UploadError extends Error {}
    expect(classify(new UploadError('x')).type).toBe('UploadError')
  })
})
