// What can be read from one thrown thing, read once and capped, whatever it is.
import { cap, LIMITS } from '../../domain/limits.js'
import { attempt, isObject, prop, textProp } from '../read.js'
import { isPlain } from './plain.js'

export interface Facts {
  readonly error: unknown
  readonly type: string
  readonly message: string
  readonly code?: string
  readonly status?: number
  readonly stack?: string
  /** There is nothing else to be read from it. */
  readonly plain?: true
}

export function factsOf(error: unknown): Facts {
  const type = typeOf(error)
  const whole = messageOf(error)
  const message = cap(whole, LIMITS.messageChars)
  const stack = stackOf(error, whole, message)
  if (stack !== undefined && isPlain(error)) return { error, type, message, stack, plain: true }
  const code = codeOf(error)
  const status = statusOf(error)
  const facts: { -readonly [Field in keyof Facts]: Facts[Field] } = { error, type, message }
  if (code !== undefined) facts.code = code
  if (status !== undefined) facts.status = status
  if (stack !== undefined) facts.stack = stack
  return facts
}

/** The name it gives itself; its class if that is only "Error". A minifier's one-letter class names say nothing. */
function typeOf(error: unknown): string {
  if (!isObject(error)) return error === null ? 'null' : typeof error
  const name = textProp(error, 'name')
  const constructorName = textProp(prop(error, 'constructor'), 'name')
  const given = name !== undefined && name !== 'Error' ? name : undefined
  const type = given ?? (constructorName && constructorName.length > 2 ? constructorName : (name ?? 'Object'))
  return cap(type, LIMITS.nameChars)
}

function messageOf(error: unknown): string {
  if (!isObject(error)) return attempt(() => String(error)) ?? ''
  const message = prop(error, 'message')
  if (typeof message === 'string') return message
  if (message !== undefined && message !== null && !isObject(message)) return String(message)
  return isErrorLike(error) ? '' : describe(error)
}

const isErrorLike = (error: object): boolean => typeof prop(error, 'stack') === 'string'

const MOST_FIELDS = 20
const LONGEST_FIELD = 500

/** A thrown object without a message shows its plain fields, a few of them. */
function describe(error: object): string {
  const keys = keysOf(error).slice(0, MOST_FIELDS)
  const fields = keys.flatMap(key => {
    const found = prop(error, key)
    // An answer's body keeps its message inside: { error: { message: '…' } }
    const value = isObject(found) ? textProp(found, 'message') : found
    if (value === undefined) return []
    return [`${cap(key, LONGEST_FIELD)}: ${cap(attempt(() => String(value)) ?? '?', LONGEST_FIELD)}`]
  })
  return fields.length === 0 ? '' : `{ ${fields.join(', ')} }`
}

/** Of a list only the first: the keys of a large buffer would fill the memory. */
function keysOf(error: object): readonly string[] {
  const isList = attempt(() => Array.isArray(error) || ArrayBuffer.isView(error)) ?? false
  if (isList) return Array.from({ length: MOST_FIELDS }, (_, index) => String(index))
  return attempt(() => Object.keys(error)) ?? []
}

const CODES = ['code', 'Code']

function codeOf(error: unknown): string | undefined {
  for (const key of CODES) {
    const code = prop(error, key)
    if (typeof code === 'number' || (typeof code === 'string' && code !== ''))
      return cap(String(code), LIMITS.nameChars)
  }
  return undefined
}

/** Where the clients in use put the status of the answer. */
const STATUS_PATHS: readonly { readonly name: string; readonly inside?: string }[] = [
  { name: 'status' },
  { name: 'statusCode' },
  { name: 'httpStatus' },
  { name: 'response', inside: 'status' },
  { name: 'response', inside: 'statusCode' },
  { name: '$metadata', inside: 'httpStatusCode' },
  { name: '$response', inside: 'statusCode' },
  { name: 'output', inside: 'statusCode' },
]

function statusOf(error: unknown): number | undefined {
  for (const { name, inside } of STATUS_PATHS) {
    const found = prop(error, name)
    if (found === undefined) continue
    const status = asStatus(inside === undefined ? found : prop(found, inside))
    if (status !== undefined) return status
  }
  return undefined
}

export function asStatus(value: unknown): number | undefined {
  const text = typeof value === 'number' || typeof value === 'string' ? String(value) : ''
  return /^[1-5]\d\d$/.test(text) ? Number(text) : undefined
}

/** Below this frame (runtime/attempt.ts) everything is how we came to call the handler: the same in every stack. */
const HANDLER_CALL = '\n    at Attempt.redriveCallsHandler ('

/** A stack begins with the whole message; a huge one would push the frames over the cap. */
function stackOf(error: unknown, whole: string, message: string): string | undefined {
  const all = textProp(error, 'stack')
  if (all === undefined) return undefined
  const stack = aboveHandlerCall(all, whole.length)
  if (message === whole) return cap(stack, LIMITS.stackChars)
  const start = whole === '' ? -1 : stack.slice(0, 400).indexOf(whole.slice(0, 100))
  const starts = start >= 0 && stack.startsWith(whole, start)
  const trimmed = starts ? stack.slice(0, start) + message + stack.slice(start + whole.length) : stack
  return cap(trimmed, LIMITS.stackChars)
}

function aboveHandlerCall(stack: string, from: number): string {
  const end = stack.indexOf(HANDLER_CALL, from)
  return end < 0 ? stack : stack.slice(0, end)
}
