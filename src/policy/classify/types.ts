// The error's own type, by name (a class of another realm or package has the same name, not the same identity).
import type { Kind } from '../../domain/failure.js'
import { isObject, items, prop } from '../read.js'
import type { Source } from './evidence.js'
import { isWeak } from './weak.js'

const VALIDATION = 'the data does not fit its schema'
const BUG = 'an error in the code, the same on every attempt'

const TYPES: Readonly<Record<string, readonly [Kind, string]>> = {
  ZodError: ['validation', VALIDATION],
  ValiError: ['validation', VALIDATION],
  ValidationError: ['validation', VALIDATION],
  SchemaError: ['validation', VALIDATION],
  SyntaxError: ['permanent', 'text that cannot be parsed stays so'],
  TypeError: ['permanent', BUG],
  RangeError: ['permanent', 'a value out of range stays so'],
  ReferenceError: ['permanent', BUG],
  EvalError: ['permanent', BUG],
  URIError: ['permanent', 'a malformed URI stays so'],
  AssertionError: ['permanent', 'an assertion does not hold'],
  DataCloneError: ['permanent', 'data that cannot be copied stays so'],
  TimeoutError: ['transient', 'took too long'],
  NetworkError: ['network', 'the network failed'],
  HTTPParserError: ['network', 'the answer is not HTTP'],
  QuotaExceededError: ['system', 'storage is full'],
}

/**
 * Libraries name their own after what they tell: StripeConnectionError, MongoNetworkError. Heard after the text, for a
 * ProviderNotFoundError may well say that its provider is starting.
 */
const ENDINGS: readonly (readonly [string, Kind])[] = [
  ['HostNotFoundError', 'network'],
  ['ConnectionError', 'network'],
  ['NetworkError', 'network'],
  ['TimeoutError', 'transient'],
  ['UnavailableError', 'transient'],
  ['RateLimitError', 'rate_limited'],
  ['TooManyRequestsError', 'rate_limited'],
  ['ValidationError', 'validation'],
  ['UniqueConstraintError', 'permanent'],
  ['NotFoundError', 'permanent'],
  ['AuthenticationError', 'authentication'],
  ['UnauthorizedError', 'authentication'],
  ['ForbiddenError', 'authentication'],
]

export const types: Source = facts => {
  const { error, type, message } = facts
  if (isWeak(facts)) return undefined
  if (type === 'RangeError' && message.includes('allocation failed'))
    return { kind: 'system', because: 'RangeError: out of memory' }
  if (items(prop(error, 'issues'), 1)?.length)
    return { kind: 'validation', because: `${type} with issues: ${VALIDATION}` }
  // class-validator throws an array of its findings.
  if (isObject(prop(items(error, 1)?.[0], 'constraints'))) return { kind: 'validation', because: VALIDATION }
  const found = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined
  return found && { kind: found[0], because: `${type}: ${found[1]}` }
}

export const names: Source = ({ type }) => {
  const kind = ENDINGS.find(([ending]) => type.endsWith(ending))?.[1]
  return kind && { kind, because: `${type}, by its name` }
}
