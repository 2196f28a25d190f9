import type { Call } from '../route.js'

export const revokeToken = ({ params, backend, acting }: Call<{ name: string }>) =>
  backend.operator.tokens.revoke(params.name, acting)
