import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { failureReasonsQuery } from '../schemas/group.js'
import { without } from '../without.js'

export const getFailureReasons = ({ query, backend }: Call<unknown, z.output<typeof failureReasonsQuery>>) =>
  backend.operator.failureReasons(without(query))
