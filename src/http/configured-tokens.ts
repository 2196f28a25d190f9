// Tokens that are configured rather than made: `name:scope+scope:secret`, comma-separated (REDRIVE_TOKENS).
import { invalid } from '../domain/errors.js'
import { isScope, SCOPES, type Scope } from '../domain/scope.js'
import { checkScopes, hashOf, isTokenName, TOKEN_NAME } from '../operator/tokens.js'

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
    // Not what they were: with the parts in another order, one of them is the secret.
    if (!isTokenName(name)) throw invalid(`The name of ${where}`, 'hidden', TOKEN_NAME)
    const asked = scopes.split('+')
    if (!asked.every(isScope)) throw invalid(`A scope of ${where}`, 'hidden', `one of ${SCOPES.join(', ')}`)
    return { name, scopes: checkScopes(asked), hash: hashOf(secret) }
  })
  const twice = parsed.findIndex(({ name }, index) => parsed.findIndex(other => other.name === name) !== index)
  if (twice >= 0) throw invalid(`The name of Token ${twice + 1} of REDRIVE_TOKENS`, 'that of another', 'its own')
  return parsed
}
