// A server that nobody could ask makes a token at its first start, and shows it this once.
import { isRedriveError } from '../domain/errors.js'
import type { Redrive } from '../index.js'

const NAME = 'first'

/** Undefined: there are tokens already, configured or made. */
export async function firstToken(
  redrive: Redrive,
  env: Readonly<Record<string, string | undefined>>,
): Promise<string | undefined> {
  const { tokens } = redrive.operator
  if (env.REDRIVE_TOKENS || (await tokens.list()).length > 0) return undefined
  try {
    const reason = 'no token was there at the first start'
    return (await tokens.create(NAME, ['admin', 'payload'], { actor: 'redrive', reason })).secret
  } catch (error) {
    // Another process was faster; it has shown its own.
    if (isRedriveError(error, 'TOKEN_EXISTS')) return undefined
    throw error
  }
}
