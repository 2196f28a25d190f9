import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { tokenBody } from '../schemas/desk.js'

export const createToken = ({ body, backend, acting }: Call<unknown, unknown, z.output<typeof tokenBody>>) =>
  backend.operator.tokens.create(body.name, body.scopes, acting)
