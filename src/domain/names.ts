// Names of queues, jobs, services and the like, as they come from outside.
import { invalid } from './errors.js'
import { LIMITS } from './limits.js'

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is refused
const CONTROL = /[\u0000-\u001f\u007f]/

/** Plain text of bounded length, without control characters: Postgres can store it and a terminal can show it. */
export const isName = (name: unknown): name is string =>
  typeof name === 'string' &&
  name.length >= 1 &&
  name.length <= LIMITS.nameChars &&
  !CONTROL.test(name) &&
  name.isWellFormed()

export function checkName(what: string, name: unknown): void {
  if (!isName(name)) throw invalid(what, name, `1 to ${LIMITS.nameChars} characters without control characters`)
}
