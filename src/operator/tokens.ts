// Who may ask over HTTP: tokens are made, listed and revoked. A secret is shown once, when it is made, and kept by nobody.
import { createHash, randomBytes } from 'node:crypto'
import { invalid, RedriveError } from '../domain/errors.js'
import { isScope, SCOPES, type Scope } from '../domain/scope.js'
import { writeAudit } from '../ledger/audit.js'
import { addToken, allTokens, removeToken, type StoredToken, type Token } from '../ledger/token.js'
import { type Acting, actorOf, type Desk, notFound } from './context.js'

export interface MadeToken extends Token {
  /** 256 bits, told this once. */
  readonly secret: string
}

export const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex')

export function tokens({ db }: Desk) {
  return {
    async create(name: string, scopes: readonly Scope[], acting: Acting = {}): Promise<MadeToken> {
      checkTokenName(name)
      const checked = checkScopes(scopes)
      const secret = `rdr_${randomBytes(32).toString('base64url')}`
      const made = await db.transaction(async tx => {
        const added = await addToken(tx, { name, hash: hashOf(secret), scopes: checked, createdBy: actorOf(acting) })
        if (added) await writeAudit(tx, { ...entry('create token', name, acting), after: { scopes: checked } })
        return added
      })
      if (!made) throw new RedriveError('TOKEN_EXISTS', `There is a token named ${name}, or there are too many tokens`)
      return { ...withoutHash(made), secret }
    },

    list: async (): Promise<Token[]> => (await allTokens(db)).map(withoutHash),

    /** It opens nothing from now on; another process may take a few seconds to know. */
    async revoke(name: string, acting: Acting = {}): Promise<Token> {
      checkTokenName(name)
      const removed = await db.transaction(async tx => {
        const was = await removeToken(tx, name)
        const before = was && { scopes: [...was.scopes] }
        if (before) await writeAudit(tx, { ...entry('revoke token', name, acting), before })
        return was
      })
      if (!removed) throw notFound(`token ${name}`)
      return withoutHash(removed)
    },

    /** With the hashes of their secrets, to compare with. */
    stored: (): Promise<StoredToken[]> => allTokens(db),
  }
}

export type Tokens = ReturnType<typeof tokens>

const withoutHash = ({ name, scopes, createdAt, createdBy }: StoredToken): Token => ({
  name,
  scopes,
  createdAt,
  createdBy,
})

const NAME = /^[\w.@-]{1,100}$/
export const TOKEN_NAME = '1 to 100 letters, digits or any of _ . @ -'

export const isTokenName = (name: string): boolean => NAME.test(name)

export function checkTokenName(name: string): void {
  if (!isTokenName(name)) throw invalid('The name of the token', name, TOKEN_NAME)
}

export function checkScopes(scopes: readonly string[]): Scope[] {
  const known = scopes.filter(isScope)
  if (known.length !== scopes.length || known.length === 0) {
    throw invalid('The scopes of a token', scopes.join('+'), `one or more of ${SCOPES.join(', ')}`)
  }
  return [...new Set(known)]
}

const entry = (action: string, target: string, acting: Acting) => ({
  actor: actorOf(acting),
  action,
  targetType: 'token' as const,
  target,
  ...(acting.reason !== undefined && { reason: acting.reason }),
})
