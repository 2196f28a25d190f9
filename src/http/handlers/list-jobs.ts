import type { z } from '@hono/zod-openapi'
import { cursorOf, placeIn } from '../cursor.js'
import type { Call } from '../route.js'
import type { jobQuery } from '../schemas/job.js'
import { without } from '../without.js'

const LIST = 'jobs'

export async function listJobs({ query, backend }: Call<unknown, z.output<typeof jobQuery>>) {
  const { limit, cursor, ...filter } = query
  const place = placeIn(LIST, cursor)
  const { items, nextCursor, total } = await backend.operator.findJobs(
    without(filter),
    without({ limit, cursor: place }),
  )
  return { items, nextCursor: cursorOf(LIST, nextCursor), total }
}
