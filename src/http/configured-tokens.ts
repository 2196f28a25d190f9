// Tokens that are configured rather than made: `name:scope+scope:secret`, comma-separated (REDRIVE_TOKENS).
import { invalid } from '../domain/errors.js'
import type { Scope } from '../domain/scope.js'
import { checkScopes, checkTokenName, hashOf } from '../operator/tokens.js'

export interface ConfiguredToken {
  readonly name: string
  readonly scopes: readonly Scope[]
  readonly hash: string
}

const SHORTEST = 8
const LONGEST = 512

/** The secret is the rest, so it may hold a colon; it is never repeated in an error. */
export function parseTokens(text: string): ConfiguredToken[] {
  const parts = text
    .split(',')
    .map(part => part.trim())
    .filter(part => part !== '')
  const parsed = parts.map((part, index) => {
    const where = `Token ${index + 1} of REDRIVE_TOKENS`
    const [name = '', scopes = '', ...rest] = part.split(':')
    const secret = rest.join(':')
    if (rest.length === 0) throw invalid(where, `${parts.length > 0 ? 'incomplete' : ''}`, 'name:scope+scope:secret')
    if (secret.length < SHORTEST || secret.length > LONGEST || !/^[\x21-\x7e]+$/.test(secret)) {
      throw invalid(
        `The secret of ${where}`,
        'hidden',
        `${SHORTEST} to ${LONGEST} visible ASCII characters without blanks`,
      )
    }
    checkTokenName(name)
    return { name, scopes: checkScopes(scopes.split('+')), hash: hashOf(secret) }
  })
  const twice = parsed.find(({ name }, index) => parsed.findIndex(other => other.name === name) !== index)
  if (twice) throw invalid('REDRIVE_TOKENS', `${twice.name} twice`, 'each name once')
  return parsed
}
