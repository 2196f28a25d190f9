// Where tokens are made: through the API by whoever has a token, and on the database itself by whoever has none yet.
import { userInfo } from 'node:os'
import type { Scope } from '../domain/scope.js'
import type { List, MadeToken, Token } from './answers.js'
import type { Cli } from './cli.js'
import { path } from './path.js'

export interface TokenDesk {
  create(name: string, scopes: readonly Scope[], reason?: string): Promise<MadeToken>
  list(): Promise<readonly Token[]>
  revoke(name: string, reason?: string): Promise<Token>
}

export async function atTokenDesk<T>(cli: Cli, work: (desk: TokenDesk) => Promise<T>): Promise<T> {
  const { host, options } = cli
  if (host.env.REDRIVE_TOKEN || options.tokenFile !== undefined || options.url !== undefined) {
    const client = await cli.client()
    return work({
      create: (name, scopes, reason) => client.post('/tokens', { name, scopes, reason }),
      list: async () => (await client.get<List<Token>>('/tokens')).items,
      revoke: (name, reason) => client.delete(path`/tokens/${name}`, { reason }),
    })
  }
  const { withLedger } = await import('../open-ledger.js')
  return withLedger(host, async ({ tokens, checkMigrated }) => {
    await checkMigrated()
    const acting = (reason: string | undefined) => ({ actor: actor(), ...(reason !== undefined && { reason }) })
    return work({
      create: async (name, scopes, reason) => asJson(await tokens.create(name, scopes, acting(reason))),
      list: async () => (await tokens.list()).map(asJson),
      revoke: async (name, reason) => asJson(await tokens.revoke(name, acting(reason))),
    })
  })
}

/** In the audit: whoever can reach the database acts under the name of the system. */
const actor = (): string => `cli:${userInfo().username}`

const asJson = <T extends { createdAt: Date; scopes: readonly Scope[] }>(token: T) => ({
  ...token,
  scopes: [...token.scopes],
  createdAt: token.createdAt.toISOString(),
})
