import type { z } from '@hono/zod-openapi'
import type { Call } from '../route.js'
import type { failureReasonsQuery } from '../schemas/group.js'
import { without } from '../without.js'

export const getFailureReasons = ({ query, backend, cached }: Call<unknown, z.output<typeof failureReasonsQuery>>) =>
  cached(`failure-reasons ${JSON.stringify(query)}`, () => backend.operator.failureReasons(without(query)))
