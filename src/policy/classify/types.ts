// The error's own type, by name (a class of another realm or package has the same name, not the same identity).
import type { Kind } from '../../domain/failure.js'
import { items, prop } from '../read.js'
import type { Source } from './evidence.js'

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
  AbortError: ['transient', 'given up before it ended'],
  TimeoutError: ['transient', 'took too long'],
  NetworkError: ['network', 'the network failed'],
  QuotaExceededError: ['system', 'storage is full'],
}

/** What fetch throws as a TypeError when the network failed, in Node and elsewhere. Its cause may say more. */
const FETCH_FAILED = new Set(['fetch failed', 'terminated', 'Failed to fetch', 'Load failed', 'network error'])

export const types: Source = ({ error, type, message }) => {
  if (type === 'TypeError' && FETCH_FAILED.has(message)) return { kind: 'network', because: `${type}: ${message}` }
  if (type === 'RangeError' && message.includes('allocation failed'))
    return { kind: 'system', because: 'RangeError: out of memory' }
  if (items(prop(error, 'issues'), 1)?.length)
    return { kind: 'validation', because: `${type} with issues: ${VALIDATION}` }
  const found = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined
  return found && { kind: found[0], because: `${type}: ${found[1]}` }
}
