import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { retryManyBody } from '../schemas/dead-letter.js'

/** By their ids alone: whoever asks has seen which ones, and what dies meanwhile does not join them. */
export const retryDeadLetters = ({ body, backend, acting }: Call<unknown, unknown, z.output<typeof retryManyBody>>) =>
  backend.operator.deadLetters.retryEach(body.ids, acting)
