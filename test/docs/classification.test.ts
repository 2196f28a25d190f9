// The tables of the page about classification are true: each status, code, type and phrase in them is given its kind.
import { describe, expect, test } from 'vitest'
import { isKind, RETRIABLE } from '../../src/domain/failure.js'
import { classify } from '../../src/policy/classify.js'
import { codeIn, readPage, tableBelow } from './pages.js'

const page = readPage('docs/guide/classification.md')

const like = (fields: object, message = 'it failed') => Object.assign(new Error(message), fields)

const GRPC = `OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED
  RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS
  UNAUTHENTICATED`.split(/\s+/)

/** An error that carries the code as its source does. */
const CARRIERS: Readonly<Record<string, (code: string) => Error>> = {
  Node: code => like({ code }),
  undici: code => like({ code }),
  AWS: name => like({ name, $metadata: { httpStatusCode: 418 } }),
  Postgres: code => like({ code, severity: 'ERROR' }),
  AMQP: code => like({ code: Number(code), classId: 50, methodId: 10 }),
  Redis: word => like({ name: 'ReplyError' }, `${word} so it is`),
  gRPC: name => like({ code: GRPC.indexOf(name), details: '', metadata: {} }),
  SMTP: code => like({ responseCode: Number(code), response: `${code} no` }),
  Prisma: code => like({ name: 'PrismaClientKnownRequestError', code }),
}

const rowsBelow = (heading: string) =>
  tableBelow(page, heading).flatMap(([kind = '', examples = '']) =>
    codeIn(examples).map(example => [example, codeIn(kind)[0] as string] as const),
  )

test('every kind is there, with what its policy does', () => {
  const told = tableBelow(page, '## Kinds').map(([kind = '', heals]) => [codeIn(kind)[0], heals === 'yes'])
  expect(Object.fromEntries(told)).toEqual(RETRIABLE)
})

describe('statuses', () => {
  test.each(rowsBelow('### HTTP status'))('%s → %s', (status, kind) => {
    expect(classify(like({ status: Number(status) })).kind).toBe(kind)
  })
})

describe('codes', () => {
  const rows = tableBelow(page, '### Codes').flatMap(([from = '', kind = '', codes = '']) =>
    codeIn(codes).map(code => [from, code, codeIn(kind)[0] as string] as const),
  )
  test.each(rows)('%s %s → %s', (from, code, kind) => {
    const carry = CARRIERS[from]
    if (!carry) throw new Error(`the test does not know how ${from} carries a code`)
    const failure = classify(carry(code))
    expect([failure.kind, failure.because]).toEqual([kind, expect.not.stringContaining('unknown error')])
  })
})

describe('types', () => {
  const rows = rowsBelow('### Types').filter(([name]) => name !== 'issues')
  test.each(rows)('%s → %s', (name, kind) => {
    expect(classify(like({ name })).kind).toBe(kind)
  })
})

describe('texts', () => {
  test.each(rowsBelow('### Text'))('%s → %s', (text, kind) => {
    expect(isKind(kind)).toBe(true)
    expect(classify(new Error(`It says: ${text.toUpperCase()}.`)).kind).toBe(kind)
  })
})
