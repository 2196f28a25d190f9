// Names from outside: `ITL.Core/ResourceGroup` and its operations. Narrow on purpose: they stand in messages, logs and
// settings.
import { RedriveError } from 'redrive'

export interface ProviderName {
  /** `ITL.Core` */
  readonly namespace: string
  /** `ResourceGroup` */
  readonly resourceType: string
}

export const LONGEST_NAME = 100
export const NAMESPACE = /^[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*$/
export const WORD = /^[A-Za-z][A-Za-z0-9_-]*$/

export const NAMESPACE_ALLOWED = `words with dots between them, such as ITL.Core, at most ${LONGEST_NAME} characters`
export const WORD_ALLOWED = `a word of letters, digits, _ and -, at most ${LONGEST_NAME} characters`

export const nameOf = ({ namespace, resourceType }: ProviderName): string => `${namespace}/${resourceType}`

export function parseProviderName(name: unknown): ProviderName {
  const [namespace = '', resourceType = '', ...rest] = typeof name === 'string' ? name.split('/') : []
  if (rest.length > 0 || !fits(namespace, NAMESPACE) || !fits(resourceType, WORD)) {
    throw bad('The name of a provider', name, 'Namespace/ResourceType, such as ITL.Core/ResourceGroup')
  }
  return { namespace, resourceType }
}

export function checkOperationName(name: unknown): void {
  if (!(typeof name === 'string' && fits(name, WORD))) throw bad('The name of an operation', name, WORD_ALLOWED)
}

const fits = (text: string, pattern: RegExp): boolean => text.length <= LONGEST_NAME && pattern.test(text)

/** One line for a value that is not allowed: what it is, what it was, what it may be. */
export function bad(what: string, was: unknown, allowed: string): RedriveError {
  const shown = typeof was === 'string' ? JSON.stringify(was.slice(0, LONGEST_NAME)) : typeof was
  return new RedriveError('SETTING_INVALID', `${what} is ${shown}; it must be ${allowed}`)
}
