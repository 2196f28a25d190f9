// Who asks. A secret is known by its SHA-256, and compared with every token there is, in constant time; tokens of the ledger
// are read again after a few seconds. Closed by default: where there is no token, nobody comes in.
import { timingSafeEqual } from 'node:crypto'
import type { Clock } from '../domain/clock.js'
import type { Scope } from '../domain/scope.js'
import { hashOf, type Tokens } from '../operator/tokens.js'
import type { ConfiguredToken } from './configured-tokens.js'

export interface Identity {
  readonly name: string
  readonly scopes: readonly Scope[]
}

/** `isMade`: by us, of 256 random bits, so that no number of guesses finds it. A configured one may be short. */
export type Known = Identity & { readonly isMade: boolean }

const REMEMBERED_MS = 3_000
const BEARER = /^Bearer +([\x21-\x7e]{1,512})$/i

export class Authenticator {
  readonly #clock: Clock
  readonly #configured: readonly ConfiguredToken[]
  readonly #stored: () => Promise<readonly ConfiguredToken[]>
  #read: { readonly at: number; readonly tokens: Promise<readonly ConfiguredToken[]> } | undefined

  constructor(clock: Clock, configured: readonly ConfiguredToken[], stored: Tokens['stored']) {
    this.#clock = clock
    this.#configured = configured
    this.#stored = stored
  }

  /** Undefined: nobody we know. */
  async identify(authorization: string | null): Promise<Known | undefined> {
    const [, secret] = BEARER.exec(authorization ?? '') ?? []
    if (secret === undefined) return undefined
    const given = Buffer.from(hashOf(secret), 'hex')
    let found: ConfiguredToken | undefined
    // Every one is looked at, whichever it is.
    for (const token of [...this.#configured, ...(await this.#tokens())]) {
      if (timingSafeEqual(Buffer.from(token.hash, 'hex'), given)) found ??= token
    }
    return found && { name: found.name, scopes: found.scopes, isMade: !this.#configured.includes(found) }
  }

  /** A token was made or revoked: the next request reads them anew. */
  forget(): void {
    this.#read = undefined
  }

  #tokens(): Promise<readonly ConfiguredToken[]> {
    const now = this.#clock.monotonic()
    if (!this.#read || now >= this.#read.at + REMEMBERED_MS) {
      const tokens = this.#stored()
      this.#read = { at: now, tokens }
      // A failed read is not remembered.
      tokens.catch(() => this.forget())
    }
    return this.#read.tokens
  }
}
